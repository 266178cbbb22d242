"""`vc-scheduler --check`: says whether the scheduler would take a configuration. It needs no cluster."""

from pathlib import Path
from typing import Final

from volcano_py.cli.process import MISUSED
from volcano_py.conf.reload import ConfFile, built_in
from volcano_py.conf.schema import ConfError
from volcano_py.daemon.plugins import policy_of
from volcano_py.scheduler.third_party import PluginFolder

GOOD: Final = 0
WARNED: Final = 1
REFUSED: Final = MISUSED


def check(path: str, plugins: str) -> int:
    """Read a configuration and try its plugins as the scheduler does, print what it says, and return the exit code.

    An empty ``path`` stands for the built-in configuration, an empty ``plugins`` for no folder of plugins.
    """
    found: tuple[str, ...] = ()
    try:
        folder = PluginFolder(Path(plugins)) if plugins else None
        loaded = ConfFile(Path(path)).load() if path else built_in()
        found = loaded.conf.warnings
        policy, unused = policy_of(loaded, folder)
    except (ConfError, NotADirectoryError) as error:
        _print_warnings(found)
        print(f"error: {error}")
        return REFUSED
    found = (*found, *unused, *policy.warnings)
    _print_warnings(found)
    number = f", with {len(found)} warning{'s' * (len(found) > 1)}" if found else ""
    print(f"{loaded.conf.file}: can be used{number}; actions: {', '.join(policy.action_names)}")
    return WARNED if found else GOOD


def _print_warnings(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        print(f"warning: {warning}")
