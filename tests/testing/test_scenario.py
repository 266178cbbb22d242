import pytest

from volcano_py.framework.session import Session
from volcano_py.model.decisions import RecordEvent
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

    with pytest.raises(LookupError, match=r"job j does not wait; waiting are \[\]"):
        result.why_not("j")


def test_a_scenario_goes_on_when_pods_end() -> None:
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


def test_names_of_other_namespaces_are_written_out() -> None:
    result = run_scenario(nodes=[a_node("n1")], jobs=[a_job("j", namespace="ml", cpu=1)])

    assert result.placements == {"ml/j-0": "n1"}
    assert result.phases == {"ml/j": "Running"}


def test_a_conf_may_be_given_as_text() -> None:
    conf = "actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: predicates\n"

    result = run_scenario(nodes=[a_node("n1", cpu=4)], jobs=[a_job("big", tasks=6, cpu=1)], conf=conf)

    assert len(result.placements) == 4, "without the gang plugin a part of a gang is placed"


def test_tiers_may_be_told_apart() -> None:
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


def test_a_name_that_nobody_has_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"there is no pod and no job x; pods are \['j-0'\]"):
        Scenario(a_job("j")).finish("x")


def test_a_scheduler_that_never_comes_to_rest_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(ssn: Session) -> None:
        ssn.emit((RecordEvent("PodGroup", "default", "j", "u", "Normal", "Again", ssn.id),))

    monkeypatch.setitem(policies.ACTIONS, "allocate", restless)

    with pytest.raises(NotSettled, match="after 100 rounds cycles still decide"):
        run_scenario(nodes=[a_node()])
