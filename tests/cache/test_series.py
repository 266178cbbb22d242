"""Services and workloads, as they become known to a cache, and the constraints that pods get by them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cache.effort import calls
from volcano_py.model.pod_terms import PodSelector, Spread
from volcano_py.model.requirements import Requirement
from volcano_py.testing import (
    a_cluster,
    a_pod,
    a_replica_set,
    a_replication_controller,
    a_service,
    added,
    deleted,
    modified,
)

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
APP, TIER = Requirement("app", "In", ("web",)), Requirement("tier", "In", ("front",))
LABELS = {"app": "web", "tier": "front", "index": "1"}
OWN = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]}


def defaults(*requirements: Requirement, namespace: str = "default") -> tuple[Spread, ...]:
    selector = PodSelector((namespace,), None, tuple(sorted(requirements)))
    return tuple(Spread(selector, key, skew, hard=False, default=True) for key, skew in ((HOST, 3), (ZONE, 5)))


def spread_of(cache, name: str = "p1") -> tuple[Spread, ...]:
    snapshot = cache.snapshot()
    row = next(row for row, record in enumerate(snapshot.tasks.records) if record is not None and record.name == name)
    return snapshot.shapes[int(snapshot.tasks.shape[row])].spread


@pytest.mark.parametrize("pod_first", [True, False])
@pytest.mark.parametrize(
    ("objects", "pod", "expected"),
    [
        pytest.param([a_service(selector={"app": "web"})], {}, defaults(APP), id="service"),
        pytest.param([a_service(selector={"app": "db"})], {}, (), id="service-of-others"),
        pytest.param([a_service(selector={})], {}, (), id="service-without-labels"),
        pytest.param([a_service()], {}, (), id="service-without-selector"),
        pytest.param([a_service(selector={"app": "web"}, namespace="other")], {}, (), id="service-elsewhere"),
        pytest.param(
            [a_service("a", selector={"app": "web"}), a_service("b", selector={"tier": "front"})],
            {},
            defaults(APP, TIER),
            id="services-together",
        ),
        pytest.param(
            [a_replica_set("web", selector={"app": "web"})], {"owner": "ReplicaSet/web"}, defaults(APP), id="owner"
        ),
        pytest.param([a_replica_set("web", selector={"app": "web"})], {}, (), id="not-its-owner"),
        pytest.param(
            [a_service(selector={"tier": "front"}), a_replica_set("web", selector={"app": "web"})],
            {"owner": "ReplicaSet/web"},
            defaults(APP, TIER),
            id="service-and-owner",
        ),
        pytest.param(
            [
                a_service(selector={"app": "web", "tier": "front"}),
                a_replication_controller("web", selector={"app": "old"}),
            ],
            {"owner": "ReplicationController/web"},
            defaults(Requirement("app", "In", ("old",)), TIER),
            id="replication-controller-that-disagrees-with-a-service",
        ),
        pytest.param(
            [a_service(selector={"app": "web"})], {"scheduler": "kube", "node": "n1"}, (), id="not-placed-by-us"
        ),
    ],
)
def test_constraints_of_a_pod_that_has_none(objects, pod, expected, pod_first: bool) -> None:
    cache = a_cluster()
    made = a_pod(labels=LABELS, **pod)
    added(cache, *([made, *objects] if pod_first else [*objects, made]))

    assert spread_of(cache) == expected


def test_a_pod_that_has_constraints_keeps_them() -> None:
    cache = a_cluster(a_service(selector={"app": "web"}), a_pod(labels=LABELS, spec=OWN))

    (own,) = spread_of(cache)

    assert own.key == "zone"


def test_the_constraints_of_a_series_change_and_end_with_it() -> None:
    cache = a_cluster(a_pod(labels=LABELS, owner="ReplicaSet/web"))
    seen = []
    for tell, one in (
        (added, a_service(selector={"app": "web"})),
        (modified, a_service(selector={"tier": "front"})),
        (added, a_replica_set("web", selector={"app": "web"})),
        (deleted, a_service(selector={"tier": "front"})),
        (deleted, a_replica_set("web")),
    ):
        tell(cache, one)
        seen.append(spread_of(cache))

    assert seen == [defaults(APP), defaults(TIER), defaults(APP, TIER), defaults(APP), ()]


def test_pods_of_a_series_share_a_shape() -> None:
    pods = [a_pod(f"p{row}", labels={**LABELS, "index": str(row)}, owner="ReplicaSet/web") for row in range(4)]
    cache = a_cluster(a_replica_set("web", selector={"app": "web"}), *pods)

    snapshot = cache.snapshot()

    assert sum(shape is not None for shape in snapshot.shapes) == 1


def test_deleted_pods_and_series_leave_nothing_behind() -> None:
    pods = [a_pod(f"p{row}", labels=LABELS, owner="ReplicaSet/web") for row in range(3)]
    cache = a_cluster(a_replica_set("web", selector={"app": "web"}), *pods)
    deleted(cache, *pods)

    assert not cache.snapshot().has_inter_pod_terms
    assert all(shape is None for shape in cache.snapshot().shapes)


@pytest.mark.parametrize("first", ["a", "z"])
def test_a_label_that_all_services_require_does_not_make_pods_costly(first: str) -> None:
    """An operator gives all its services one label, and each of them another one."""

    def labels(number: int) -> dict[str, str]:
        return {first: "operator", "instance": str(number)}

    def effort(size: int) -> int:
        cache = a_cluster(*(a_service(f"s{n}", selector=labels(n)) for n in range(size)))
        added(cache, *(a_pod(f"p{n}", labels=labels(n)) for n in range(size)))
        last = a_pod("last", labels=labels(0))
        return calls(lambda: (added(cache, last), deleted(cache, last)))

    assert effort(300) < 1.5 * effort(3)


def test_a_service_costs_as_much_as_it_has_pods() -> None:
    def effort(size: int) -> int:
        cache = a_cluster(*(a_pod(f"p{n}", labels={"app": "web", "index": str(n)}) for n in range(size)))
        added(cache, *(a_service(f"s{n}", selector={"app": "web", "index": str(n)}) for n in (0, 2)))
        service = a_service("next", selector={"app": "web", "index": "1"})
        return calls(lambda: (added(cache, service), deleted(cache, service)))

    assert effort(300) < 1.5 * effort(3)


labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)
steps = st.lists(st.tuples(st.sampled_from([a_pod, a_service, None]), st.sampled_from("12"), labels), max_size=30)


@settings(max_examples=80)
@given(steps)
def test_pods_are_spread_as_if_all_services_and_pods_had_come_at_once(found: list[tuple]) -> None:
    cache, objects = a_cluster(), {}
    for make, number, given_labels in found:
        for kind in (a_pod, a_service):
            gone = None if make is not None else objects.pop((kind, number), None)
            if gone is not None:
                deleted(cache, gone)
        if make is not None:
            of = {"labels": given_labels} if make is a_pod else {"selector": given_labels}
            objects[make, number] = make(f"o{number}", **of)
            added(cache, objects[make, number])

    afresh = a_cluster(*objects.values())
    for number in (number for kind, number in objects if kind is a_pod):
        assert spread_of(cache, f"o{number}") == spread_of(afresh, f"o{number}")


def test_services_come_and_go_whichever_label_they_are_found_by() -> None:
    labels = [{"app": "web", "index": str(number % 3)} for number in range(6)]
    services = [a_service(f"s{number}", selector=found) for number, found in enumerate(labels)]
    cache = a_cluster(*services)

    added(cache, a_pod(labels=labels[1]))
    both = spread_of(cache)
    deleted(cache, services[1])
    modified(cache, a_service("s4", selector={"app": "web"}))
    one = spread_of(cache)
    deleted(cache, *(one for one in services if one.metadata.name != "s1"))

    assert both == defaults(APP, Requirement("index", "In", ("1",)))
    assert one == defaults(APP)
    assert spread_of(cache) == ()
