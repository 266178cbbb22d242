import pytest

from volcano_py.framework.session import Session
from volcano_py.model.decisions import Evict, Nominate, RecordEvent
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import policy as policies
from volcano_py.testing import NotSettled, Scenario, a_group, a_job, a_node, a_pod, a_queue, run_scenario


def test_a_gang_that_does_not_fit_leaves_room_for_one_that_does() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=4)],
        jobs=[a_job("big", tasks=6, min_available=6, cpu=1), a_job("small", tasks=2, min_available=2, cpu=1)],
        plugins=["priority", "gang", "predicates"],
    )

    assert result.placements == {"small-0": "n1", "small-1": "n1"}
    assert result.batches == [["small-0", "small-1"]]
    assert result.phases == {"big": "Inqueue", "small": "Running"}
    assert [reason.code for reason in result.why_not("big").reasons] == ["insufficient-cpu"]
    assert result.waiting() == ["big"]


def test_a_job_that_does_not_wait_has_no_reason() -> None:
    result = run_scenario(nodes=[a_node()], jobs=[a_job("j", cpu=1)])

    with pytest.raises(LookupError, match=r"job j does not wait; waiting jobs: \[\]"):
        result.why_not("j")


def test_a_scenario_continues_when_pods_end() -> None:
    scenario = Scenario(a_node("n1", cpu=1), a_job("first", cpu=1), a_job("second", cpu=1, created=1))
    before = scenario.run()

    scenario.finish("first")
    after = scenario.run()

    assert (before.placements, before.waiting()) == ({"first-0": "n1"}, ["second"])
    assert after.placements == {"first-0": "n1", "second-0": "n1"}
    assert after.phases["first"] == "Completed"


def test_a_terminating_pod_keeps_its_room_until_it_is_deleted() -> None:
    scenario = Scenario(a_node("n1", cpu=1), a_pod("old", cpu=1, node="n1"), a_job("new", cpu=1))

    scenario.terminate("old")
    waiting = scenario.run()
    scenario.delete("old")
    placed = scenario.run()

    assert waiting.placements == {}
    assert "once resource is released" in waiting.conditions["new-0"]
    assert placed.placements == {"new-0": "n1"}


def test_nodes_come_and_go() -> None:
    scenario = Scenario(a_node("n1", cpu=1), a_job("j", tasks=2, cpu=1))
    short = scenario.run()

    scenario.add(a_node("n2", cpu=1))
    scenario.delete("n1")
    still_short = scenario.run()
    scenario.add(a_node("n1", cpu=1))

    assert (short.placements, still_short.placements) == ({}, {})
    assert scenario.run().placements == {"j-0": "n1", "j-1": "n2"}


def test_names_in_other_namespaces_include_the_namespace() -> None:
    result = run_scenario(nodes=[a_node("n1")], jobs=[a_job("j", namespace="ml", cpu=1)])

    assert result.placements == {"ml/j-0": "n1"}
    assert result.phases == {"ml/j": "Running"}


def test_a_conf_may_be_given_as_text() -> None:
    conf = "actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: predicates\n"

    result = run_scenario(nodes=[a_node("n1", cpu=4)], jobs=[a_job("big", tasks=6, cpu=1)], conf=conf)

    assert len(result.placements) == 4, "without the gang plugin a part of a gang is placed"


def test_plugins_may_be_given_in_tiers() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=4), a_node("n2", cpu=8)],
        jobs=[a_job("j", cpu=1)],
        plugins=[["gang"], ["predicates", {"name": "binpack", "arguments": {"binpack.weight": 5}}]],
    )

    assert result.placements == {"j-0": "n1"}


def test_objects_may_be_given_one_by_one() -> None:
    result = run_scenario(
        nodes=[a_node("n1")],
        groups=[a_group("g", queue="q")],
        pods=[a_pod("p", group="g", cpu=1)],
        queues=[a_queue("q")],
    )

    assert result.placements == {"p": "n1"}


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"there is no pod or job x; pods: \['j-0'\]"):
        Scenario(a_job("j")).finish("x")


def test_a_scheduler_that_never_settles_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(ssn: Session) -> None:
        ssn.state.emit((RecordEvent("PodGroup", "default", "j", "u", "Normal", "Again", ssn.state.memory.session_id),))

    monkeypatch.setitem(policies.ACTIONS, "allocate", restless)

    with pytest.raises(NotSettled, match="cycles still decide something after 100 rounds"):
        run_scenario(nodes=[a_node()])


def evicting(ssn: Session) -> None:
    """Evict the pod ``low-0`` for the pod ``high-0`` once, by an action that has no other purpose."""
    rows = {record.name: row for row, record in enumerate(ssn.state.tasks.records) if record is not None}
    low, high = rows.get("low-0", -1), rows.get("high-0", -1)
    if (
        low >= 0
        and ssn.state.tasks.status[low] == TaskStatus.RUNNING
        and ssn.state.tasks.status[high] == TaskStatus.PENDING
    ):
        victim, winner = ssn.state.tasks.record(low), ssn.state.tasks.record(high)
        evict = Evict(victim.ref, "n1", victim.key, "preempt", "for high", winner.key)
        ssn.state.emit((evict, Nominate(winner.ref, "n1")))


@pytest.fixture
def an_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(policies.ACTIONS, "preempt", evicting)


LOW, HIGH = a_job("low", cpu=1, node="n1", phase="Running"), a_job("high", cpu=1, priority=9)


@pytest.mark.usefixtures("an_eviction")
@pytest.mark.parametrize("grace", [0, 1, 3])
def test_an_evicted_pod_terminates_is_gone_and_comes_back_with_another_uid(grace: int) -> None:
    scenario = Scenario(a_node("n1", cpu=1), HIGH, LOW, actions="enqueue, allocate, preempt", grace=grace)

    result = scenario.run()

    assert result.evictions == [["low-0"]]
    assert (result.evicted[0].action, str(result.evicted[0].beneficiary)) == ("preempt", "default/high")
    assert result.running_or_bound == result.placements == {"high-0": "n1"}
    assert result.nominated == {}, "a pod that is bound is nominated no more"
    assert "low" in result.waiting()
    (again,) = [record for record in scenario.cache.snapshot().tasks.records if record and record.name == "low-0"]
    assert again.uid != LOW.pods[0].metadata.uid


@pytest.mark.usefixtures("an_eviction")
def test_an_evicted_pod_without_an_owner_does_not_come_back() -> None:
    scenario = Scenario(a_node("n1", cpu=1), HIGH, LOW, actions="enqueue, allocate, preempt", recreated=False)

    result = scenario.run()

    assert result.running_or_bound == {"high-0": "n1"}
    assert result.waiting() == []


def test_decisions_in_cycles_that_must_be_quiet_are_detected() -> None:
    scenario = Scenario(a_node("n1"), HIGH)

    with pytest.raises(NotSettled, match="settled after 0 rounds, but 1 later"):
        scenario.settle(1)
