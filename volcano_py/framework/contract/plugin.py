"""What every plugin is, and what the framework must know to place tasks quickly and still exactly."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar

from volcano_py.conf.arguments import Warn
from volcano_py.framework.contract.extension_point import overrides
from volcano_py.framework.retired import rename_methods
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Ints
from volcano_py.model.shape import Field


class DependsOn(Enum):
    """What the answers of a plugin's predicate and node_order may depend on, besides the shape of the task."""

    NODE_ALONE = "the node itself, so that an answer changes only when that node is used"
    OTHER_NODES = "other nodes too (normalised scores, pods elsewhere), so that every placement may change every answer"


class Plugin:
    """A policy. A fresh instance serves one session; what must outlive the session belongs in the cycle's memory.

    A subclass states what it answers: it inherits extension points (`framework.contract.extension_points`) besides
    this class.
    """

    name: ClassVar[str]
    depends_on: ClassVar[DependsOn] = DependsOn.OTHER_NODES  # always correct, so it is the default
    counts: ClassVar[frozenset[str]] = frozenset()
    """The methods about victims that can be asked about many candidates at once.

    For each candidate such a method counts all candidates before it in the group as evicted, and as many tasks of the
    preemptor as placed as `VictimCandidates.placed_before` says. An answer that depends on the candidate alone also
    qualifies. Of the preemptor such a method reads only its purpose and queue, the request and priority of its task,
    and what its job holds and the priority of that job."""
    reads: ClassVar[frozenset[Field]] = frozenset()  # fields of the shape that answers depend on
    arguments: ClassVar[frozenset[str]] = frozenset()  # argument keys it understands; others are warned about

    hierarchical: ClassVar[frozenset[type] | None] = None
    """Extension points it answers only with ``enableHierarchy``; None if it knows no hierarchy of queues."""
    hierarchy: bool = False
    """Whether the conf switches its hierarchy on. The creator of the instance sets it before the session opens."""
    asked: frozenset[type] = frozenset()
    """The extension points that the conf leaves switched on for it. The creator of the instance sets it."""

    protects: ClassVar[bool] = False
    """Whether it is there to protect victims (`VictimFilter`). Its vote about victims counts only if all voters are
    such plugins. Otherwise, alone in a tier, it would allow everybody whom the tiers before it do not."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Accept methods under their old names; methods that a subclass overrides do not count as they did before."""
        super().__init_subclass__(**options)
        rename_methods(cls, {"marks": "equivalence_keys"})
        names = ("protected" if name == "spared" else name for name in cls.counts)
        own = "counts" in vars(cls)
        cls.counts = frozenset(name for name in names if own or not overrides(cls, name, "counts"))

    def __init__(self, arguments: Any = None) -> None:
        """Take what `parse` returned for the arguments in the conf."""

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> Any:
        """Return the plugin's arguments in the form its constructor takes, and tell ``warn`` what was ignored.

        Raises ValueError on a value with which the plugin must not run.
        """
        return None

    def depends(self, task: TaskInfo) -> DependsOn:
        """Return what the answers about tasks of this class may depend on; never more than `depends_on` says."""
        return self.depends_on

    def equivalence_keys(self, ssn: State) -> Ints | None:
        """Return one number per task row, shape (n_tasks,), if tasks of one shape must be told apart; 0 for no key.

        Asked once, before `on_session_open`. Later `TaskInfo.equivalence_key` returns the number of a task.
        """
        return None

    def on_session_open(self, ssn: State) -> None:
        """Prepare what the hooks will look up. Arithmetic over nodes belongs here or in hooks over whole arrays."""

    def on_session_close(self, ssn: State) -> None:
        """Record the outcome of the session: conditions, report entries. Nothing can be placed any more."""


class PluginFailed(Exception):
    """A plugin raised or gave an invalid answer. The job in hand is skipped; the cycle goes on."""

    def __init__(self, plugin: str, point: str, problem: str, where: str = "") -> None:
        """Take the names of plugin and method, what went wrong, and file and line, "" if they are unknown."""
        self.text = f"plugin {plugin} failed in {point}: {problem}"  # for users, whom the place does not help
        super().__init__(f"{self.text} ({where})" if where else self.text)
        self.plugin = plugin
        self.point = point
