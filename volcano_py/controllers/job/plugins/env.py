"""Plugin env: every container knows the number of its pod in its task.

``VC_TASK_INDEX`` and ``VK_TASK_INDEX`` (the older name) have the same value.
"""

from collections.abc import Sequence
from typing import Any, Final

from volcano_py.api.batch import Job, Task
from volcano_py.api.plugin_arguments import NoArguments, parse
from volcano_py.controllers.job.plugins.containers import ALL, change, own_spec, variable, with_env
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject

_NAMES: Final = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env:
    """Adds the number of the pod to containers and init containers."""

    needs_key_pair = False
    fixed_at_start: tuple[str, ...] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        self._unusable = parse(NoArguments, arguments)[1]

    def warnings(self, job: Job) -> Sequence[str]:
        """Return the arguments: the plugin has none."""
        return self._unusable

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return nothing: the variables are all."""
        return ()

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Add both variables."""
        added = [variable(name, str(index)) for name in _NAMES]
        change(own_spec(pod), lambda container: with_env(container, added), ALL)
