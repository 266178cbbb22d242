"""Terms, labels, services and workloads in any order of events: a store is equal to one told only how things are."""

from random import Random
from typing import Any

from tests.reference.world import a_node, a_shape
from tests.snapshot.pictures import check_free_rows, picture
from volcano_py.model.facts import NamespaceRecord
from volcano_py.model.objects import TaskRecord
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread
from volcano_py.model.requirements import Requirement
from volcano_py.model.series import Series
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.store import ClusterStore

SPACES = ("ns", "other")
APP_A, APP_B, TIER = Requirement("app", "In", ("a",)), Requirement("app", "In", ("b",)), Requirement("tier", "Exists")
SELECTORS = tuple(
    PodSelector(spaces, team, labels)
    for spaces in (("ns",), ("ns", "other"))
    for team in (None, (Requirement("team", "In", ("x",)),))
    for labels in ((APP_A,), (APP_B, TIER), (TIER,), ())
)


class History:
    """A store, and how things are now."""

    def __init__(self) -> None:
        self.store = ClusterStore()
        self.store.set_node(a_node("n1"))
        self.now: dict[tuple[str, ...], tuple[str, tuple[Any, ...]]] = {}

    def tell(self, key: tuple[str, ...], how: str, *what: Any) -> None:
        call(self.store, how, what)
        if how.startswith("remove"):
            self.now.pop(key, None)
        else:
            self.now[key] = (how, what)

    def rebuilt(self, random: Random) -> ClusterStore:
        store = ClusterStore()
        store.set_node(a_node("n1"))
        for how, what in random.sample(list(self.now.values()), len(self.now)):
            call(store, how, what)
        return store


def call(store: ClusterStore, how: str, what: tuple[Any, ...]) -> None:
    for owner in (store, store.facts, store.series):
        if hasattr(owner, how):
            getattr(owner, how)(*what)
            return
    raise LookupError(how)


def a_random_shape(random: Random) -> Shape:
    term, kind = PodTerm(random.choice(SELECTORS), "zone"), random.random()
    if kind < 0.3:
        return a_shape(cpu=1, pod_terms=PodTerms(away=(term,)))
    return a_shape(cpu=1, spread=[Spread(term.selector, "zone", 1, hard=True)] if kind < 0.5 else ())


def one_event(history: History, random: Random) -> None:
    space, name = random.choice(SPACES), random.choice("uvw")
    kind = random.random()
    if kind < 0.45:
        labels = random.choice(((), ("app", "a"), ("app", "a", "tier", "1"), ("app", "b", "tier", "2")))
        record = TaskRecord(
            f"{space}-{name}",
            space,
            name,
            labels=labels,
            owner=random.choice(("", "ReplicaSet/r")),
            foreign=random.random() < 0.2,
        )
        place = random.choice(((TaskStatus.PENDING, ""), (TaskStatus.RUNNING, "n1")))
        history.tell(("task", space, name), "set_task", record, a_random_shape(random), *place)
    elif kind < 0.6:
        history.tell(("task", space, name), "remove_task", f"{space}-{name}")
    elif kind < 0.7:
        history.tell(("space", space), "set_namespace", NamespaceRecord(space, random.choice(({}, {"team": "x"}))))
    elif kind < 0.75:
        history.tell(("space", space), "remove_namespace", space)
    elif kind < 0.85:
        requirements = random.choice(((), (APP_A,), (APP_B,)))
        history.tell(("service", space, name), "set_service", Series(space, name, requirements))
    elif kind < 0.9:
        history.tell(("service", space, name), "remove_service", space, name)
    elif kind < 0.97:
        requirements = random.choice(((APP_A,), (TIER,)))
        history.tell(("workload", space), "set_workload", Series(space, "ReplicaSet/r", requirements))
    else:
        history.tell(("workload", space), "remove_workload", space, "ReplicaSet/r")


def without_order(found: dict[str, Any]) -> dict[str, Any]:
    """Sets have no order, and their texts therefore none either."""
    return {key: value for key, value in found.items() if key != "shapes"}


def test_a_store_with_terms_after_any_changes_equals_one_built_from_the_final_state() -> None:
    seen = {"selected": 0, "defaults": 0}
    for number in range(120):
        random, history = Random(number), History()
        for step in range(40):
            one_event(history, random)
            if step % 8 != 7:
                continue
            snapshot = history.store.snapshot()
            check_free_rows(snapshot)
            expected = history.rebuilt(random).snapshot()
            assert without_order(picture(snapshot)) == without_order(picture(expected)), (number, step)
            assert snapshot.has_inter_pod_terms == expected.has_inter_pod_terms
            shapes = [shape for shape in snapshot.shapes if shape is not None]
            seen["selected"] += any(shape.selected_by for shape in shapes)
            seen["defaults"] += any(spread.default for shape in shapes for spread in shape.spread)
    assert min(seen.values()) > 100
