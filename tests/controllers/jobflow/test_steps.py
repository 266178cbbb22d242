"""When steps of flows start."""

import time
from typing import Any

import pytest

from tests.controllers.jobflow.flows import a_child, a_flow, a_step, created, problems, verdict
from volcano_py.controllers.jobflow.steps import refusals

WEB = [{"name": "web", "replicas": 4, "minAvailable": 2}]


def a_probe(task: str = "web", phase: str = "Running") -> dict[str, Any]:
    return {"taskStatusList": [{"taskName": task, "phase": phase}]}


def counting(**pods: int) -> dict[str, Any]:
    return {"web": {"phase": pods}}


@pytest.mark.parametrize(
    ("phase", "counts", "starts"),
    [
        ("Running", {"Pending": 4}, False),
        ("Running", {"Running": 1, "Pending": 3}, False),
        ("Running", {"Running": 2, "Pending": 2}, True),
        ("Running", {"Running": 1, "Succeeded": 1}, True),
        ("Succeeded", {"Running": 4}, False),
        ("Succeeded", {"Succeeded": 2}, True),
        ("Failed", {"Failed": 2}, True),
    ],
)
def test_a_step_with_a_probe_starts_when_enough_pods_are_in_the_phase(
    phase: str, counts: dict[str, int], starts: bool
) -> None:
    flow = a_flow(a_step("a"), a_step("b", "a", probe=a_probe(phase=phase)))
    job = a_child("a", "Running", WEB, taskStatusCount=counting(**counts))

    assert created(verdict(flow, job)) == (["f-b"] if starts else [])


def test_a_probe_without_a_minimum_asks_for_all_replicas() -> None:
    flow = a_flow(a_step("a"), a_step("b", "a", probe=a_probe("default0")))
    tasks = [{"replicas": 2}]

    for pods, jobs in ((1, []), (2, ["f-b"])):
        counts = {"default0": {"phase": {"Running": pods}}}
        assert created(verdict(flow, a_child("a", "Running", tasks, taskStatusCount=counts))) == jobs


def test_a_completed_target_needs_no_probe_any_more() -> None:
    flow = a_flow(a_step("a"), a_step("b", "a", probe=a_probe()))

    assert created(verdict(flow, a_child("a", "Completed", WEB))) == ["f-b"]


def test_a_target_that_no_probe_names_must_be_completed() -> None:
    flow = a_flow(a_step("a"), a_step("x"), a_step("b", "a", "x", probe=a_probe()))
    ready = a_child("a", "Running", WEB, taskStatusCount=counting(Running=4))

    assert created(verdict(flow, ready, a_child("x", "Running"))) == []
    assert created(verdict(flow, ready, a_child("x", "Completed"))) == ["f-b"]


def test_a_probe_waits_for_targets_that_have_no_job_yet() -> None:
    flow = a_flow(a_step("a"), a_step("b", "a", probe=a_probe()))

    assert created(verdict(flow)) == ["f-a"]


def refused(*steps: dict[str, Any], job: Any = None) -> dict[str, str]:
    """Return the reasons and texts of the problems of a flow that starts nothing."""
    found = verdict(a_flow(*steps), *([job] if job is not None else []))
    assert created(found) == []
    return dict(problems(found))


@pytest.mark.parametrize("field", ["httpGetList", "tcpSocketList"])
def test_probes_over_the_network_are_refused_in_words(field: str) -> None:
    probe = {field: [{"taskName": "web", "port": 80}]}

    found = refused(a_step("a"), a_step("b", "a", probe=probe), job=a_child("a", "Completed"))

    assert f"dependsOn.probe.{field} is not supported" in found["UnsupportedProbe"]


def test_a_target_that_is_no_step_is_named() -> None:
    assert "names nowhere, which the flow does not have" in refused(a_step("b", "nowhere"))["InvalidStep"]


def test_an_unknown_phase_of_a_probe_is_named() -> None:
    found = refused(a_step("a"), a_step("b", "a", probe=a_probe(phase="Ready")), job=a_child("a", "Running"))

    assert "'Ready': write one of Pending, Running, Succeeded, Failed" in found["InvalidStep"]


def test_an_unknown_task_of_a_probe_is_named() -> None:
    found = refused(a_step("a"), a_step("b", "a", probe=a_probe("db")), job=a_child("a", "Running", WEB))

    assert "task db, which no target has" in found["InvalidStep"]


def test_a_circle_is_named_by_the_steps_in_it_and_not_by_those_around_it() -> None:
    steps = (a_step("in", "b"), a_step("a", "c"), a_step("b", "a"), a_step("c", "b"))

    found = verdict(a_flow(a_step("before"), *steps))

    assert created(found) == ["f-before"]
    texts = [text for _, text in problems(found)]
    assert len(texts) == 3
    assert all("in a circle, among a, b, c: break it" in text for text in texts)


def test_a_circle_before_a_thousand_steps_does_not_keep_the_event_loop() -> None:
    flow = a_flow(a_step("s0", "s1"), *(a_step(f"s{number}", f"s{number - 1}") for number in range(1, 1000)))
    begin = time.process_time()

    found = refusals(flow)

    assert time.process_time() - begin < 3.0  # 16 s, if every step is compared with every other
    assert set(found) == {"s0", "s1"}


def test_a_step_that_waits_for_itself_is_a_circle() -> None:
    assert "among a: break it" in refused(a_step("a", "a"))["InvalidStep"]


def test_the_texts_about_a_circle_of_thousands_of_steps_name_only_some_of_them() -> None:
    """With the names of all in the text of each, a single flow would take gigabytes."""
    steps = [a_step(f"s{i}", f"s{(i + 1) % 2000}") for i in range(2000)]
    steps.append(a_step("vain", *(f"unknown{i}" for i in range(2000))))

    texts = [refusal.text for refusal in refusals(a_flow(*steps)).values()]

    assert len(texts) == 2001
    assert max(map(len, texts)) < 300
    assert "among s0, s1, s10, " in texts[0]
    assert "and 1990 more" in texts[0]


def test_steps_that_depend_on_jobs_with_many_tasks_look_at_the_tasks_once() -> None:
    """All controllers wait meanwhile; 1,000 steps would look at 30 jobs of 1,000 tasks each, in every look."""
    targets = [f"t{i}" for i in range(30)]
    jobs = [a_child(name, "Running", [{"name": f"task{i}"} for i in range(1000)]) for name in targets]
    waiting = [a_step(f"s{i}", *targets, probe=a_probe("task7")) for i in range(1000)]
    flow = a_flow(*map(a_step, targets), *waiting)
    before = time.process_time()

    assert created(verdict(flow, *jobs)) == []
    assert time.process_time() - before < 3
