"""The invariants of binds and leases: each fails where it should, and only there."""

from types import SimpleNamespace

import pytest

from tests.simulation import objects
from tests.simulation.fabricated import Fabricated
from tests.simulation.insight import Shown

NO_SHOWN = Shown(0.0, {}, {})


def test_a_bind_as_decided_violates_nothing(world: Fabricated) -> None:
    for index in range(4):
        pod = world.pod(f"p{index}")
        world.decide(world.one, pod, "node-0")
        world.bind(world.one, pod, "node-0")
    world.now()
    assert not world.found()


def test_a_second_binding_is_found(world: Fabricated) -> None:
    pod = world.pod("p")
    for node in ("node-0", "node-1"):
        world.decide(world.one, pod, node)
        world.bind(world.one, pod, node)
    assert "one binding per pod" in world.found()


def test_a_bind_of_the_pod_that_replaced_the_decided_one_is_found(world: Fabricated) -> None:
    world.decide(world.one, world.pod("p"), "node-0")
    world.remove(objects.PODS, "default/p")
    world.bind(world.one, world.pod("p"), "node-0")
    assert "one binding per pod" in world.found()


@pytest.mark.parametrize("cpu", ["3", "2"])
def test_own_binds_count_before_the_watch_shows_them(world: Fabricated, cpu: str) -> None:
    first, second = world.pod("p1", cpu), world.pod("p2", cpu)
    before = world.shown()
    for pod in (first, second):
        world.decide(world.one, pod, "node-0", before)
        world.bind(world.one, pod, "node-0")
    assert world.found() == ({"no node above its allocatable"} if cpu == "3" else set())


def test_own_binds_that_the_sender_had_given_up_do_not_count(world: Fabricated) -> None:
    first, second = world.pod("p1", "3"), world.pod("p2", "3")
    before = world.shown()
    world.decide(world.one, first, "node-0", before)
    world.decide(world.one, second, "node-0", before)
    world.at(12.0)
    world.bind(world.one, first, "node-0", sent_at=1.0)
    world.bind(world.one, second, "node-0")
    assert not world.found()


@pytest.mark.parametrize("known", [True, False])
def test_foreign_pods_count_once_they_were_shown(world: Fabricated, known: bool) -> None:
    pod, before = world.pod("p", "3"), world.shown()
    world.pod("foreign", "3", "", schedulerName="default-scheduler", nodeName="node-0")
    world.decide(world.one, pod, "node-0", world.shown() if known else before)
    world.bind(world.one, pod, "node-0")
    assert world.found() == ({"no node above its allocatable"} if known else set())


def test_memory_and_the_number_of_pods_count_too(world: Fabricated) -> None:
    world.servers.create(objects.node("small", 64, pods=1))
    for name in ("p1", "p2"):
        pod = world.pod(name)
        world.decide(world.one, pod, "small")
        world.bind(world.one, pod, "small")
    assert "2 pods of 1" in world.text()


@pytest.mark.parametrize("known", [True, False])
def test_a_node_that_shrank_counts_as_shown(world: Fabricated, known: bool) -> None:
    pod, before = world.pod("p", "3"), world.shown()
    node = world.current(objects.NODES, "node-0")
    room = {**node["status"]["allocatable"], "cpu": "2"}
    world.put(objects.NODES, node, status={**node["status"], "allocatable": room})
    world.decide(world.one, pod, "node-0", world.shown() if known else before)
    world.bind(world.one, pod, "node-0")
    assert world.found() == ({"no node above its allocatable"} if known else set())


@pytest.mark.parametrize("known", [True, False])
def test_a_node_that_grew_counts_as_shown_to_the_later_decision_that_took_effect_first(
    world: Fabricated, known: bool
) -> None:
    world.servers.create(objects.node("small", 3))
    first, second, before = world.pod("p1", "2"), world.pod("p2", "2"), world.shown()
    world.decide(world.one, first, "small", before)
    node = world.current(objects.NODES, "small")
    room = {**node["status"]["allocatable"], "cpu": "4"}
    world.put(objects.NODES, node, status={**node["status"], "allocatable": room})
    world.at(2.0)
    world.decide(world.one, second, "small", world.shown() if known else before)
    world.bind(world.one, second, "small")
    world.bind(world.one, first, "small")
    assert world.found() == (set() if known else {"no node above its allocatable"})


def test_a_decision_for_an_unknown_node_is_found(world: Fabricated) -> None:
    world.decide(world.one, world.pod("p"), "node-7")
    assert world.found() == {"binds go to open nodes"}


@pytest.mark.parametrize("late_s", [0.5, 20.0])
def test_a_bind_to_a_node_that_was_shown_to_be_gone_is_found(world: Fabricated, late_s: float) -> None:
    """A request that may have been built before the news is not to blame."""
    pod = world.pod("p")
    world.decide(world.one, pod, "node-0")
    world.remove(objects.NODES, "node-0")
    world.at(3.0)
    world.world.cycle(world.one, world.shown())
    world.at(3.0 + late_s)
    world.bind(world.one, pod, "node-0")
    assert world.found() == ({"binds go to open nodes"} if late_s > 10.0 else set())


def test_a_retry_to_a_node_that_was_shown_to_be_gone_is_found(world: Fabricated) -> None:
    """The answer to the first attempt came after the news, so the second attempt was built after it."""
    pod = world.pod("p")
    world.decide(world.one, pod, "node-0")
    world.remove(objects.NODES, "node-0")
    world.at(3.0)
    world.world.cycle(world.one, world.shown())
    with world.asks(world.one, "create", "pods/binding", key="default/p") as asked:
        world.at(4.0)
        world.world._answered(asked, 429)
    world.at(5.0)
    world.bind(world.one, pod, "node-0")
    assert world.found() == {"binds go to open nodes"}


@pytest.mark.parametrize("known", [True, False])
def test_a_decision_for_a_cordoned_node_is_found(world: Fabricated, known: bool) -> None:
    pod, before = world.pod("p"), world.shown()
    world.put(objects.NODES, world.current(objects.NODES, "node-0"), spec={"unschedulable": True})
    world.decide(world.one, pod, "node-0", world.shown() if known else before)
    world.bind(world.one, pod, "node-0")
    assert world.found() == ({"binds go to open nodes"} if known else set())


@pytest.mark.parametrize("known", [True, False])
def test_a_leader_that_does_not_know_a_bind_is_found(world: Fabricated, known: bool) -> None:
    world.pod("foreign", "3", "", schedulerName="default-scheduler", nodeName="node-0")
    world.at(10.0)
    world.lead(world.other)
    world.world.cycle(world.other, world.shown() if known else Shown(10.0, {}, {}))
    assert world.found() == (set() if known else {"leaders know all binds"})


@pytest.mark.parametrize("sent_at", [9.0, 11.0])
def test_what_was_sent_after_the_lease_was_lost_is_found(world: Fabricated, sent_at: float) -> None:
    world.at(10.0)
    world.lead(world.other)
    world.at(12.0)
    with world.asks(world.one, "create", "events", sent_at):
        world.pod("written")
    assert world.found() == ({"one leader"} if sent_at > 10.0 else set())


@pytest.mark.parametrize("ends", [True, False])
def test_a_process_that_lost_its_lease_and_still_runs_is_found(world: Fabricated, ends: bool) -> None:
    world.lead(world.other)
    if ends:
        world.one.die()
    for _ in range(40):
        world.now()
    assert ("who lost the lease ends" in world.found()) is not ends


def test_a_process_that_was_stopped_after_its_lease_was_lost_has_time_to_end(world: Fabricated) -> None:
    world.one.pause()
    world.lead(world.other)
    for _ in range(40):
        world.now()
    assert "who lost the lease ends" not in world.found()


def test_a_process_that_leads_again_after_another_one_is_found(world: Fabricated) -> None:
    for process in (world.other, world.one):
        world.lead(process)
    assert "who lost the lease ends" in world.found()


@pytest.mark.parametrize("answered", [True, False])
def test_a_lease_that_is_released_while_a_bind_is_under_way_is_found(world: Fabricated, answered: bool) -> None:
    with world.asks(world.one, "create", "pods/binding") as asked:
        asked.connection = world.connection(world.one)
        world.servers.open[asked] = None
    if answered:
        del world.servers.open[asked]
    world.lead(world.one, holder="")
    assert world.found() == (set() if answered else {"the lease is released at last"})


def test_a_write_before_anybody_leads_is_found(world: Fabricated) -> None:
    with world.asks(world.controllers, "create", "pods"):
        world.pod("written")
    assert world.found() == {"one leader"}


@pytest.mark.parametrize("bound", [True, False])
def test_a_bound_pod_that_is_told_to_wait_is_found(world: Fabricated, bound: bool) -> None:
    pod = world.pod("p")
    if bound:
        world.decide(world.one, pod, "node-0")
        world.bind(world.one, pod, "node-0")
    told = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    with world.asks(world.one, "patch", "pods/status"):
        world.put(objects.PODS, pod, status={"phase": "Pending", "conditions": [told]})
    assert world.found() == ({"a bound pod is scheduled"} if bound else set())


@pytest.mark.parametrize(("pause_s", "retry_after_s"), [(0.4, 0.0), (1.0, 30.0), (3.0, 0.0)])
def test_refusals_that_are_not_heeded_are_found(world: Fabricated, pause_s: float, retry_after_s: float) -> None:
    machine = world.world.machines["scheduler-0"]
    machine.process = world.one
    for attempt in range(12):
        world.at(10.0 + attempt * pause_s)
        with world.asks(world.one, "create", "pods/binding", key="default/p") as asked:
            asked.retry_after_s = retry_after_s
            world.world._answered(asked, 429)
    assert world.found() == (set() if pause_s == 3.0 else {"refusals are heeded"})


@pytest.mark.parametrize(("refusals", "found"), [(22, False), (23, True)])
def test_a_queue_that_changes_allows_twice_as_many_refusals(world: Fabricated, refusals: int, found: bool) -> None:
    machine = world.world.machines["scheduler-0"]
    machine.process = world.one
    world.servers.create(objects.queue("research"))
    for _ in range(refusals):
        with world.asks(world.one, "create", "pods/binding", key="default/p") as asked:
            world.world._answered(asked, 409)
    assert world.found() == ({"refusals are heeded"} if found else set())


@pytest.mark.parametrize("same", [True, False])
def test_an_object_that_exists_and_is_created_again_and_again_is_found(world: Fabricated, same: bool) -> None:
    machine = world.world.machines["controllers-0"]
    machine.process = world.one
    world.one.name = machine.name
    for attempt in range(12):
        with world.asks(world.one, "create", "pods", key="default/") as asked:
            asked.taken = "train-worker-0" if same else f"train-worker-{attempt}"
            world.world._answered(asked, 409)
    assert world.found() == ({"refusals are heeded"} if same else set())


def test_refusals_that_are_lost_on_their_way_bind_nobody(world: Fabricated) -> None:
    world.world.machines["scheduler-0"].process = world.one
    for attempt in range(12):
        world.at(10.0 + attempt * 0.4)
        with world.asks(world.one, "create", "pods/binding", key="default/p") as asked:
            asked.lost = True
            world.world._answered(asked, 409)
    assert world.found() == set()


@pytest.mark.parametrize(("pause_s", "closed"), [(2.0, False), (2.0, True), (3.0, False)])
def test_a_request_before_retry_after_is_found(world: Fabricated, pause_s: float, closed: bool) -> None:
    """An answer that may have been lost with its connection binds nobody."""
    for at in (10.0, 10.0 + pause_s):
        world.at(at)
        with world.asks(world.one, "patch", "podgroups.scheduling.volcano.sh", key="default/p") as asked:
            asked.connection = SimpleNamespace(is_closing=lambda: closed)  # type: ignore[assignment]
            asked.retry_after_s = 3.0
            world.world._answered(asked, 429)
    assert world.found() == ({"Retry-After is honoured"} if pause_s < 3.0 and not closed else set())


@pytest.mark.parametrize("replaced", [True, False])
def test_retry_after_is_not_about_another_pod_of_the_name(world: Fabricated, replaced: bool) -> None:
    pod = world.pod("p")
    for at in (10.0, 11.0):
        world.at(at)
        with world.asks(world.one, "create", "pods/binding") as asked:
            asked.path = "/api/v1/namespaces/default/pods/p/binding"
            asked.connection = SimpleNamespace(is_closing=lambda: False)  # type: ignore[assignment]
            asked.retry_after_s = 3.0
            world.world._answered(asked, 429)
        if replaced:
            world.remove(objects.PODS, "default/p")
            world.servers.create({**pod, "metadata": {"name": "p", "namespace": "default"}})
    assert world.found() == (set() if replaced else {"Retry-After is honoured"})


@pytest.mark.parametrize("message", ["0/2 nodes are available", ""])
def test_a_pod_that_waits_without_a_reason_is_found(world: Fabricated, message: str) -> None:
    pod = world.pod("p")
    world.servers.create(objects.group("g", 1, "default", "1"))
    told = {"type": "PodScheduled", "status": "False", "message": message}
    world.put(objects.PODS, pod, status={"phase": "Pending", "conditions": [told]})
    assert world.rest("waiting pods say why") == (set() if message else {"waiting pods say why"})
