"""Turns a configuration into a policy, and tries third-party plugins before it loads them.

Loading a plugin runs its code, and code may hang. Therefore a process of its own first loads and tries all of them, on
a small cluster and with a time limit. The scheduler loads only plugins that have passed.
"""

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Final

from volcano_py.conf.reload import LoadedConf
from volcano_py.conf.schema import ConfError, SchedulerConf, Where
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import Policy, resolve
from volcano_py.scheduler.policy import PLUGINS_TO_COME
from volcano_py.scheduler.third_party import GROUP, PluginFolder, ThirdParty, load_plugins

TRIAL: Final = "volcano_py.testing.trial"
ALONE: Final = "--alone"  # flag of the trial: this process watches over it
LIMIT: Final = "--limit"  # flag of the trial: after how many seconds it says itself where it hangs
COMPLETE: Final = "the trial is complete"  # the last line of the trial
_UNUSABLE: Final = (
    2  # exit code of the trial: the plugins are not to blame; the caller knows the file and reports the error
)
_LIMIT_S: Final = 20.0
_TO_SAY_S: Final = 3.0
"""How much earlier a trial ends that hangs, so that it can say where."""
_TRIALS: Final = 3  # while files change


def policy_of(
    loaded: LoadedConf, folder: PluginFolder | None = None, limit_s: float = _LIMIT_S
) -> tuple[Policy, tuple[str, ...]]:
    """Return the policy of a configuration, and what could not be loaded and is not named in it.

    Raises ConfError for an unknown name, and for a plugin that fails its trial. Takes up to
    ``limit_s`` if other people's plugins are named, longer while their files change, and must not be called on an event
    loop then.
    """
    if folder is not None:
        folder.reading()
    foreign = list(_foreign(loaded.conf))
    if not foreign or (folder is None and not entry_points(group=GROUP)):
        return resolve(loaded.conf), ()
    found = _tried(loaded, folder, foreign[0][1], limit_s)
    try:
        policy = resolve(loaded.conf, PLUGINS | found.plugins)
    except ConfError as error:
        raise ConfError(error.where, "; ".join((error.problem, *found.problems))) from error
    return policy, tuple(found.problems)


def _tried(loaded: LoadedConf, folder: PluginFolder | None, where: Where, limit_s: float) -> ThirdParty:
    """Load plugins that have passed their trial, and not what somebody has written over them meanwhile."""
    if folder is None:
        _try_out(loaded, folder, where, limit_s)
        return load_plugins()
    for _ in range(_TRIALS):
        _try_out(loaded, folder, where, limit_s)
        if folder.is_as_read():
            found = load_plugins(folder)
            if folder.is_as_read():
                return found
        folder.reading()
    raise ConfError(where, f"the files of {folder.path} change during their trial; the next check tries them again")


def _foreign(conf: SchedulerConf) -> Iterable[tuple[str, Where]]:
    for tier in conf.tiers:
        for entry in tier:
            if entry.name not in PLUGINS and entry.name not in PLUGINS_TO_COME:
                yield entry.name, entry.where


def _try_out(loaded: LoadedConf, folder: PluginFolder | None, where: Where, limit_s: float) -> None:
    command = [sys.executable, "-m", TRIAL, ALONE, "--scheduler-conf", "-"]
    if limit_s > _TO_SAY_S:
        command += [LIMIT, str(limit_s - _TO_SAY_S)]
    if folder is not None:
        command += ["--plugins-dir", str(folder.path)]
    try:
        trial = subprocess.run(
            command,
            input=loaded.text,
            encoding="utf-8",
            errors="replace",  # plugins may write anything
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        problem = f"plugins that it names did not pass a trial of {limit_s:g} s: loading or running them hangs"
        raise ConfError(where, problem) from error
    except OSError as error:
        raise ConfError(where, f"the trial of its plugins cannot be started: {error}") from error
    said = [line for line in trial.stdout.splitlines() if line.strip()]
    if COMPLETE not in said:
        # Of a traceback the last line says it; what plugins have printed may be of any length.
        last = [line for line in (*said, *trial.stderr.splitlines()) if line.strip()][-1:]
        text = f"a plugin ended the trial of its plugins with code {trial.returncode}"
        raise ConfError(where, ": ".join((text, *last)))
    if trial.returncode not in (0, _UNUSABLE):
        raise ConfError(where, "; ".join(line for line in said if line != COMPLETE))
