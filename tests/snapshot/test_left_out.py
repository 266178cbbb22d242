"""Resources that pods make up: beyond a limit they have no rows, until a node or a queue offers them."""

import pytest

from volcano_py.model.resources import EPSILON, MOST_RESOURCES, NOT_OFFERED
from volcano_py.snapshot import layout
from volcano_py.snapshot.store import ClusterStore
from volcano_py.testing import a_cluster, a_group, a_node, a_pod, a_queue, added, deleted, modified

GPU = "example.com/gpu"
FIRST = 3  # cpu, memory, pods


def made_up(count: int, first: int = 0) -> dict[str, str]:
    """Return quantities of so many resources that no node offers."""
    return {f"example.com/made-up-{number:05}": "1" for number in range(first, first + count)}


def rows(store: ClusterStore) -> int:
    return len(store.snapshot().resources)


def left_out(store: ClusterStore, uid: str) -> tuple[str, ...]:
    found = store.snapshot()
    (row,) = store.rows_of([uid])
    shape = found.shapes[found.tasks.shape[row]]
    assert shape is not None
    return tuple(name for name, _ in shape.left_out)


def used_of(store: ClusterStore, node: str, resource: str) -> float:
    found = store.snapshot()
    section = layout.section(found.nodes.block, layout.USED, len(found.resources))
    row = found.resources.find(resource)
    assert row is not None
    return float(section[row, found.nodes.names.index(node)])


def test_a_pod_with_20_000_made_up_resources_has_one_row_for_all_of_them() -> None:
    cache = a_cluster(a_node("n1"), a_pod("bad", uid="bad", cpu="1", **made_up(20_000)))

    assert rows(cache.store) == FIRST + 1
    assert len(left_out(cache.store, "bad")) == 20_000
    found = cache.store.snapshot()
    (row,) = cache.store.rows_of(["bad"])
    request = found.requests[:, found.tasks.shape[row]]
    assert request.tolist() == [1000, 0, 1, 20_000_000]
    assert found.resources.names[3] == NOT_OFFERED


def test_made_up_resources_up_to_the_limit_have_rows_and_the_next_has_none() -> None:
    cache = a_cluster(a_pod("many", **made_up(MOST_RESOURCES - 1)))
    added(cache, a_pod("two", uid="two", **made_up(2, first=50_000)))
    added(cache, a_pod("one", uid="one", **made_up(1, first=60_000)))
    added(cache, a_pod("old", uid="old", **made_up(2)))
    added(cache, a_pod("new", uid="new", **made_up(1, first=70_000)))

    assert left_out(cache.store, "two") == ("example.com/made-up-50000", "example.com/made-up-50001")
    assert left_out(cache.store, "one") == ()
    assert left_out(cache.store, "old") == ()
    assert left_out(cache.store, "new") == ("example.com/made-up-70000",)
    assert rows(cache.store) == FIRST + MOST_RESOURCES + 1


def test_resources_that_nodes_and_queues_offer_do_not_count() -> None:
    cache = a_cluster(a_node("n1", **made_up(MOST_RESOURCES)), queues=[a_queue(capability=made_up(300, first=1_000))])
    added(cache, a_pod("one", uid="one", **made_up(MOST_RESOURCES, first=50_000)))
    assert left_out(cache.store, "one") == ()

    added(cache, a_node("n2", **made_up(1, first=50_000)))  # makes room for another one
    added(cache, a_pod("two", uid="two", **made_up(1, first=60_000)))
    assert left_out(cache.store, "two") == ()


@pytest.mark.parametrize("offers", ["node", "queue"])
def test_a_resource_has_its_row_once_somebody_offers_it(offers: str) -> None:
    many = made_up(MOST_RESOURCES)
    scarce = {GPU: "2"}
    late = a_cluster(a_node("n1"), a_node("n2"), a_pod("many", uid="many", **many))
    pods = (
        a_pod("waits", uid="waits", group="g", cpu="1", **scarce),
        a_pod("runs", uid="runs", group="g", node="n1", **scarce, **made_up(1, first=70_000)),
    )
    group = a_group("g", min_resources={"cpu": "1", **scarce})
    added(late, group, *pods)
    assert left_out(late.store, "waits") == (GPU,)
    assert used_of(late.store, "n1", NOT_OFFERED) == 3000

    offer = a_node("n1", **{GPU: 4}) if offers == "node" else a_queue("gpus", capability=scarce)
    (modified if offers == "node" else added)(late, offer)

    assert left_out(late.store, "waits") == ()
    assert left_out(late.store, "runs") == ("example.com/made-up-70000",)
    assert used_of(late.store, "n1", GPU) == 2000
    assert used_of(late.store, "n1", NOT_OFFERED) == 1000
    found = late.store.snapshot()
    asked = found.jobs.rules.min_resources[:, found.jobs.rules.present][:, 0]
    assert dict(zip(found.resources.names, asked.tolist(), strict=True))[GPU] == 2000
    assert dict(zip(found.resources.names, asked.tolist(), strict=True))[NOT_OFFERED] == 0


def test_a_store_in_which_pods_came_first_equals_one_in_which_the_node_came_first() -> None:
    offer, pod = a_node("n1", cpu=4, **{GPU: 4}), a_pod("runs", uid="runs", node="n1", cpu="1", **{GPU: "1"})
    early = a_cluster(a_pod("many", uid="many", **made_up(MOST_RESOURCES)), offer, pod)
    late = a_cluster(a_pod("many", uid="many", **made_up(MOST_RESOURCES)), pod, offer)

    deleted(early, a_pod("many", uid="many"))
    deleted(late, a_pod("many", uid="many"))

    for name in (GPU, "cpu"):
        assert used_of(early.store, "n1", name) == used_of(late.store, "n1", name) > EPSILON
    late.validate()


def test_a_group_asks_for_what_has_no_row_in_the_row_of_all_such() -> None:
    cache = a_cluster(a_group("g", min_resources={"cpu": "1", **made_up(MOST_RESOURCES + 1)}))

    found = cache.store.snapshot()
    assert rows(cache.store) == FIRST + 1
    assert found.jobs.rules.min_resources[:, 0].tolist() == [1000, 0, 0, 1000 * (MOST_RESOURCES + 1)]


def test_nothing_is_left_of_pods_that_are_gone() -> None:
    pods = [a_pod(f"bad-{n}", uid=f"bad-{n}", cpu=str(n + 1), **made_up(300, first=n * 100)) for n in range(5)]
    cache = a_cluster(a_node("n1"), *pods)
    assert cache.store.shapes.left_out

    deleted(cache, *pods)

    assert not cache.store.shapes.left_out
    assert len(cache.store.shapes) == 0
