"""Which pods the selectors in use mean: always what asking every selector about every pod would say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cache.effort import calls
from tests.reference.world import a_shape, a_task
from volcano_py.api.core import Pod
from volcano_py.model.facts import NamespaceRecord
from volcano_py.model.objects import TaskRecord
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread
from volcano_py.model.requirements import Requirement
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot import selection
from volcano_py.snapshot.store import ClusterStore
from volcano_py.testing import a_cluster, a_pod, added, deleted

WEB = PodSelector(("ns",), None, (Requirement("app", "In", ("web",)),))
DB = PodSelector(("ns",), None, (Requirement("app", "In", ("db",)),))
TEAM = PodSelector((), (Requirement("team", "In", ("x",)),), ())

requirements = st.builds(
    Requirement,
    st.sampled_from(("app", "tier")),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.sampled_from((("web",), ("db",), ("db", "web"))),
)
selectors = st.builds(
    PodSelector,
    st.sampled_from(((), ("ns",), ("ns", "other"))),
    st.none()
    | st.lists(st.builds(Requirement, st.just("team"), st.sampled_from(("In", "NotIn")), st.just(("x",)))).map(tuple),
    st.none() | st.lists(requirements, max_size=2).map(tuple),
    st.sampled_from((True, True, True, False)),
)
own_terms = st.lists(st.builds(PodTerm, selectors, st.just("zone")), max_size=2).map(
    lambda found: PodTerms(away=tuple(found))
)
labels = st.dictionaries(st.sampled_from(("app", "tier", "z")), st.sampled_from(("web", "db")), max_size=2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abcd"), st.sampled_from(("ns", "other")), labels, own_terms),
        st.tuples(st.just("remove"), st.sampled_from("abcd")),
        st.tuples(
            st.just("space"), st.sampled_from(("ns", "other")), st.sampled_from((None, {"team": "x"}, {"team": "y"}))
        ),
    ),
    max_size=14,
)


def labelled(uid: str, namespace: str, found: dict[str, str]) -> TaskRecord:
    labels = tuple(text for pair in sorted(found.items()) for text in pair)
    return a_task(uid, uid=uid, namespace=namespace, labels=labels).record


@settings(max_examples=120, derandomize=True)
@given(steps, st.sampled_from((1, 64)))
def test_every_task_is_selected_by_exactly_the_matching_selectors_in_use(found: list[tuple], at_most: int) -> None:
    store = ClusterStore()
    tasks: dict[str, tuple[TaskRecord, PodTerms]] = {}
    spaces: dict[str, dict[str, str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "_INDEXED_AT_MOST", at_most)
        for step in found:
            if step[0] == "set":
                _, uid, namespace, written, terms = step
                tasks[uid] = (labelled(uid, namespace, written), terms)
                store.set_task(tasks[uid][0], a_shape(cpu=1, pod_terms=terms), TaskStatus.PENDING)
            elif step[0] == "remove":
                tasks.pop(step[1], None)
                store.remove_task(step[1])
            else:
                spaces[step[1]] = step[2] or {}
                tell(store, step[1], step[2])
            check(store, tasks, spaces)


def tell(store: ClusterStore, space: str, found: dict[str, str] | None) -> None:
    if found is None:
        store.facts.remove_namespace(space)
    else:
        store.facts.set_namespace(NamespaceRecord(space, found))


def check(
    store: ClusterStore, tasks: dict[str, tuple[TaskRecord, PodTerms]], spaces: dict[str, dict[str, str]]
) -> None:
    used = {term.selector for _, terms in tasks.values() for term in terms.away}
    snapshot = store.snapshot()
    assert snapshot.has_inter_pod_terms == bool(used)
    for row, record in enumerate(snapshot.tasks.records):
        if record is None:
            continue
        shape = snapshot.shapes[int(snapshot.tasks.shape[row])]
        assert shape is not None
        space = spaces.get(record.namespace, {})
        expected = {one for one in used if one.selects(record.namespace, space, record.label_map)}
        assert shape.selected_by == expected
        assert shape.pod_terms == tasks[record.uid][1]


def shape_in(store: ClusterStore, uid: str) -> Shape:
    snapshot = store.snapshot()
    row = next(row for row, record in enumerate(snapshot.tasks.records) if record is not None and record.uid == uid)
    found = snapshot.shapes[int(snapshot.tasks.shape[row])]
    assert found is not None
    return found


def put(store: ClusterStore, name: str, shape: Shape | None = None, *labels: str) -> None:
    task = a_task(name, shape or a_shape(cpu=1), uid=name, labels=labels)
    store.set_task(task.record, task.shape, task.status)


def test_labels_that_nobody_selects_on_make_no_shapes() -> None:
    store = ClusterStore()
    for index in range(5):
        put(store, f"p{index}", None, "app", "web", "index", str(index))

    assert len(store.shapes) == 1


def test_a_selector_that_comes_and_goes_leaves_shapes_as_they_were() -> None:
    store = ClusterStore()
    put(store, "p", None, "app", "web", "index", "1")
    put(store, "q", None, "app", "web", "index", "2")
    put(store, "r", None, "app", "other")

    put(store, "hater", a_shape(pod_terms=PodTerms(away=(PodTerm(WEB, "zone"),))), "app", "hater")
    assert shape_in(store, "p") is shape_in(store, "q")
    assert shape_in(store, "p").selected_by == {WEB}
    assert shape_in(store, "r").selected_by == frozenset()

    store.remove_task("hater")
    assert shape_in(store, "p") == a_shape(cpu=1)
    assert len(store.shapes) == 1


def test_a_selector_stays_in_use_as_long_as_one_task_has_it() -> None:
    store = ClusterStore()
    put(store, "p", None, "app", "web")
    away = a_shape(pod_terms=PodTerms(away=(PodTerm(WEB, "zone"),)))
    even = a_shape(spread=(Spread(WEB, "zone", 1, hard=False),))
    put(store, "one", away)
    put(store, "other", even)
    store.remove_task("one")

    assert shape_in(store, "p").selected_by == {WEB}


def test_a_task_whose_terms_change_releases_the_old_selectors() -> None:
    store = ClusterStore()
    put(store, "p", None, "app", "web")
    put(store, "one", a_shape(pod_terms=PodTerms(away=(PodTerm(WEB, "zone"),))))
    put(store, "one", a_shape(pod_terms=PodTerms(away=(PodTerm(DB, "zone"),))))

    assert shape_in(store, "p").selected_by == frozenset()


def test_namespace_labels_may_become_known_late_change_and_go() -> None:
    store = ClusterStore()
    put(store, "p")
    put(store, "one", a_shape(pod_terms=PodTerms(near=(PodTerm(TEAM, "zone"),))))

    seen = []
    for found in ({"team": "x"}, {"team": "y"}, {"team": "x"}, None):
        tell(store, "ns", found)
        seen.append(bool(shape_in(store, "p").selected_by))
    assert seen == [True, False, True, False]


@pytest.mark.parametrize("first", ["a", "z"])
def test_a_label_that_all_selectors_require_does_not_make_pods_costly(first: str) -> None:
    """The pods of each instance of an application stay away from each other; all instances have one label."""

    def pod(name: str, instance: int) -> Pod:
        labels = {first: "web", "instance": str(instance)}
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
        away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return a_pod(name, labels=labels, spec={"affinity": away})

    def effort(size: int) -> int:
        cache = a_cluster(*(pod(f"p{n}", n) for n in range(size)))
        last = pod("last", size)
        return calls(lambda: (added(cache, last), deleted(cache, last)))

    assert effort(300) < 1.5 * effort(3)
