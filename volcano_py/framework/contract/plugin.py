"""What every plugin is, and what the framework must know to place tasks quickly and still exactly."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar

from volcano_py.conf.arguments import Warn
from volcano_py.framework.retired import rename_methods
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Ints
from volcano_py.model.shape import Field


class DependsOn(Enum):
    """What the answers of a plugin's predicate and node_order may depend on, besides the task's shape."""

    NODE_ALONE = "the node itself, so that an answer changes only when that node is used"
    OTHER_NODES = "other nodes too (normalised scores, pods elsewhere), so that every placement may change every answer"


class Plugin:
    """A policy. A fresh instance serves one session; what must outlive it belongs into the cycle's memory.

    A subclass states what it answers by inheriting extension points (`framework.contract.extension_points`) beside
    this class.
    """

    name: ClassVar[str]
    depends_on: ClassVar[DependsOn] = DependsOn.OTHER_NODES  # the safe answer for a plugin that does not say
    counts: ClassVar[frozenset[str]] = frozenset()
    """The methods that, asked about a candidate for eviction, count all before it in the group as gone, and as many
    tasks of the claim as placed as `VictimCandidates.placed_before` says: they can be asked about many at once. An
    answer that
    depends on the candidate alone does that too. Of the claim they look at nothing but its purpose and queue, the
    request and priority of its task, and what its job holds and what priority it has."""
    reads: ClassVar[frozenset[Field]] = frozenset()  # fields of the shape that answers depend on
    arguments: ClassVar[frozenset[str]] = frozenset()  # argument keys it understands; others are warned about

    hierarchical: ClassVar[frozenset[type] | None] = None
    """Extension points it answers only with ``enableHierarchy``; None if it knows no hierarchy of queues."""
    hierarchy: bool = False
    """Whether the conf switches its hierarchy on; set by whoever makes the instance, before the session opens."""
    asked: frozenset[type] = frozenset()
    """The extension points that the conf leaves switched on for it; set by whoever makes the instance."""

    sole: frozenset[type] = frozenset()
    """The extension points that no other plugin answers; set by whoever opens the session, before it opens."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Let methods under old names answer."""
        super().__init_subclass__(**options)
        rename_methods(cls, {"marks": "equivalence_keys"})
        cls.counts = frozenset("protected" if name == "spared" else name for name in cls.counts)

    def __init__(self, arguments: Any = None) -> None:
        """Take the arguments that `parse` made of the conf."""

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> Any:
        """Return the plugin's arguments in the form its constructor takes, and tell ``warn`` what was left aside.

        Raises ValueError on a value with which the plugin must not run.
        """
        return None

    def depends(self, task: TaskInfo) -> DependsOn:
        """Return what the answers about tasks of this kind may depend on; at most what `depends_on` says."""
        return self.depends_on

    def equivalence_keys(self, ssn: State) -> Ints | None:
        """Return a number per task row, shape (n_tasks,), if tasks of one shape must be told apart; 0: nothing to tell.

        Asked once, before `on_session_open`. A task is asked about with its mark, `TaskInfo.equivalence_key`.
        """
        return None

    def on_session_open(self, ssn: State) -> None:
        """Lay out what the hooks will look up. Arithmetic over nodes belongs here or into whole-array hooks."""

    def on_session_close(self, ssn: State) -> None:
        """Say what the session came to: conditions, report entries. Nothing can be placed any more."""


class PluginFailed(Exception):
    """A plugin raised or answered nonsense; it costs the job in hand its turn, not the cycle."""

    def __init__(self, plugin: str, point: str, problem: str) -> None:
        super().__init__(f"plugin {plugin} failed in {point}: {problem}")
        self.plugin = plugin
        self.point = point
