"""A session on a written-down cluster."""

from collections.abc import Sequence

from tests.reference.world import World
from volcano_py.conf.schema import OFF_BY_DEFAULT
from volcano_py.framework.contract.extension_points import POINTS
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.session import Session
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.state import State
from volcano_py.framework.state.static_filter_cache import StaticFilterCache
from volcano_py.model.decisions import Emit
from volcano_py.model.shape import Shape
from volcano_py.snapshot.columns import Snapshot
from volcano_py.snapshot.store import ClusterStore


def a_session(
    cluster: World | ClusterStore | Snapshot,
    *plugins: Plugin,
    tiers: Sequence[Sequence[Plugin]] | None = None,
    seed: int = 0,
    actions: frozenset[str] = frozenset({"enqueue", "allocate"}),
    emit: Emit | None = None,
    static_filters: StaticFilterCache | None = None,
    memory: Memory | None = None,
) -> Session:
    """Open a session with these plugins in one tier, or in the tiers given."""
    store = cluster.store() if isinstance(cluster, World) else cluster
    return Session(
        snapshot=store.snapshot() if isinstance(store, ClusterStore) else store,
        tiers=[[(plugin, _points(plugin)) for plugin in tier] for tier in (tiers or [plugins])],
        actions=actions,
        clock=CycleClock(),
        seed=seed,
        memory=memory or Memory(),
        emit=emit or (lambda batch: None),
        static_filters=static_filters or StaticFilterCache(),
    )


def _points(plugin: Plugin) -> frozenset[type]:
    silent = frozenset() if plugin.hierarchy else plugin.hierarchical or frozenset()
    points = (point for point in POINTS if isinstance(plugin, point) and point.switch not in OFF_BY_DEFAULT)
    return frozenset(points) - silent


def shape_id(ssn: Session, shape: Shape) -> int:
    return ssn.state.classes.shapes.index(shape)


def info(ssn: Session, shape: Shape) -> TaskInfo:
    """Return what plugins see of tasks of a shape; some task of the session must have it."""
    return ssn.state.task_of(shape_id(ssn, shape))


def job_row(ssn: Session | State, name: str) -> int:
    jobs = (ssn.state if isinstance(ssn, Session) else ssn).jobs
    return next(row for row in jobs.present().tolist() if jobs.record(row).key.name == name)


def task_row(ssn: Session, name: str) -> int:
    return next(row for row, record in enumerate(ssn.state.tasks.records) if record is not None and record.name == name)


def node_row(ssn: Session, name: str) -> int:
    return ssn.state.nodes.statics.row_of[name]
