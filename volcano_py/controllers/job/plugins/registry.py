"""The plugins that jobs may name, and those of one job.

Plugins act on a pod in a fixed order, whatever the order in ``spec.plugins``: env, svc, ssh, tensorflow, pytorch, mpi,
ray, hcclrank (which reads what pytorch sets), then those of other packages by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final

from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.plugins.contract import (
    ENTRY_POINTS,
    JobPlugin,
    KeyPair,
    PluginFactory,
    PluginObject,
    PluginProblem,
)
from volcano_py.controllers.job.plugins.env import Env
from volcano_py.controllers.job.plugins.hcclrank import Hcclrank
from volcano_py.controllers.job.plugins.mpi import Mpi
from volcano_py.controllers.job.plugins.pytorch import Pytorch
from volcano_py.controllers.job.plugins.ray import Ray
from volcano_py.controllers.job.plugins.ssh import Ssh
from volcano_py.controllers.job.plugins.svc import Svc
from volcano_py.controllers.job.plugins.tensorflow import Tensorflow

BUILT_IN: Final[Mapping[str, PluginFactory]] = {
    "env": Env,
    "svc": Svc,
    "ssh": Ssh,
    "tensorflow": Tensorflow,
    "pytorch": Pytorch,
    "mpi": Mpi,
    "ray": Ray,
    "hcclrank": Hcclrank,
}
"""The plugins of this package, in the order in which they act."""


@dataclass(frozen=True, slots=True)
class PluginTable:
    """The plugins that jobs may name, in the order in which they act, and why others could not be loaded."""

    factories: Mapping[str, PluginFactory]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins of one generation of a job, in the order in which they act; one call is for all of them."""

    named: tuple[tuple[str, JobPlugin], ...]
    problems: tuple[str, ...]
    """Why the job cannot proceed: an unknown plugin, or one that cannot be built. Empty if it can."""
    warnings: tuple[str, ...]
    """What the users of the job must know although it runs, each for an event."""

    @property
    def needs_key_pair(self) -> bool:
        """Whether `objects` needs a generated key pair."""
        return any(plugin.needs_key_pair for _, plugin in self.named)

    @property
    def fixed_at_start(self) -> tuple[str, ...]:
        """The variables that running pods keep when somebody changes the replicas of a task."""
        return tuple(name for _, plugin in self.named for name in plugin.fixed_at_start)

    def objects(self, job: Job, key_pair: KeyPair | None = None) -> list[PluginObject]:
        """Return the objects that the pods of the job need; raise PluginProblem with the name of the plugin."""
        found: list[PluginObject] = []
        for name, plugin in self.named:
            try:
                found += plugin.objects(job, key_pair)
            except Exception as error:
                raise _problem(name, error) from error
        return found

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Change pod ``index`` of a task before it is created; raise PluginProblem with the name of the plugin.

        All of the pod but its outermost dictionary may be shared with the template: it is never changed in place.
        """
        for name, plugin in self.named:
            try:
                plugin.customize(pod, job, task, index)
            except Exception as error:
                raise _problem(name, error) from error


def load_table() -> PluginTable:
    """Return the built-in plugins and those of installed packages; errors in these become problems.

    Runs the code of these packages. Call it once, when the process starts.
    """
    factories = dict(BUILT_IN)
    problems = []
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value)):
        source = f"entry point {entry.name} = {entry.value}"
        try:
            factory = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a package may raise anything
            problems.append(f"{source}: {type(error).__name__}: {error}")
            continue
        if entry.name in BUILT_IN:
            problems.append(f'{source}: "{entry.name}" is the name of a built-in plugin: choose another')
        elif entry.name in factories:
            problems.append(f'{source}: another package has a plugin "{entry.name}": choose another name')
        elif not callable(factory):
            problems.append(f"{source}: it is not a class or function that takes the arguments of the plugin")
        else:
            factories[entry.name] = factory
    return PluginTable(factories, tuple(problems))


def build_plugins(job: Job, factories: Mapping[str, PluginFactory] = BUILT_IN) -> Plugins:
    """Build the plugins that a job names; what is wrong with them stands in the result."""
    asked = job.spec.plugins
    named = []
    problems = _unknown([name for name in asked if name not in factories], factories)
    warnings = []
    for name, factory in factories.items():
        if name not in asked:
            continue
        try:
            plugin = factory(asked[name] or ())
            warnings += [f'plugin "{name}": {text}' for text in plugin.warnings(job)]
        except Exception as error:  # noqa: BLE001 - the plugin of a package may raise anything
            problems.append(str(_problem(name, error)))
        else:
            named.append((name, plugin))
    return Plugins(tuple(named), tuple(problems), tuple(warnings))


def _unknown(names: Sequence[str], factories: Mapping[str, PluginFactory]) -> list[str]:
    return [
        f'there is no plugin "{name}": create the job with others ({", ".join(factories)}), or install the package '
        f"that has it (entry point {ENTRY_POINTS}) where the controller manager runs, and restart that"
        for name in sorted(names)
    ]


def _problem(name: str, error: Exception) -> PluginProblem:
    if isinstance(error, PluginProblem):
        return PluginProblem(f'plugin "{name}": {error}')
    return PluginProblem(f'plugin "{name}" failed: {type(error).__name__}: {error}')
