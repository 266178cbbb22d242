"""A plugin of others may raise or answer anything: the cycle ends, and the failure names the plugin and its file."""

import re
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from tests.testing.answers_all import HARMLESS, answering
from volcano_py.framework.contract import Plugin, Vote
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Bind, Decision
from volcano_py.scheduler import run_cycle
from volcano_py.testing import a_policy
from volcano_py.testing.objects import EPOCH
from volcano_py.testing.trial import ACTIONS, sample_cluster, tier_with

OF_SINGLE_TASKS: Final = {"preemptable", "reclaimable"}
TOLD: Final = {"job_enqueued", "placed", "freed"}
VOTERS: Final = {"preemptable", "reclaimable", "unified_evictable"}
MAY_BE_NONE: Final = TOLD | VOTERS | {"job_valid", "inter_pod_filter", "inter_pod_scores", "leaf_order"}
MAY_BE_TRUE: Final = TOLD | {"overused", "job_starving", "preemptive", "queue_order", "victim_queue_order"}


def _raise() -> Any:
    raise RuntimeError("tripped")


WRONG: Final[dict[str, tuple[Callable[[], Any], frozenset[str] | set[str]]]] = {
    "raises": (_raise, set()),
    "none": (lambda: None, MAY_BE_NONE),
    "true": (lambda: True, MAY_BE_TRUE),
    "text": (lambda: "yes", TOLD),
    "objects": (lambda: np.full(11, None, dtype=object), TOLD),
}
"""What is answered, and the methods for which this is valid."""


def run(plugin: type[Plugin], method: str) -> tuple[CycleReport, list[Bind]]:
    batches: list[tuple[Decision, ...]] = []
    clock = CycleClock(EPOCH.timestamp(), time.perf_counter)
    policy = a_policy(ACTIONS[method not in OF_SINGLE_TASKS], [tier_with(plugin)])
    _, report = run_cycle(sample_cluster().snapshot(), policy, clock, 0, Memory(), batches.append)
    return report, [one for batch in batches for one in batch if isinstance(one, Bind)]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("method", HARMLESS)
def test_a_wrong_answer_costs_at_most_what_needed_it(method: str, wrong: str) -> None:
    answer, valid_for = WRONG[wrong]
    calls: list[int] = []

    def once(self: Any, *args: Any) -> Any:
        calls.append(1)
        return answer() if len(calls) == 1 else HARMLESS[method](self, *args)

    report, binds = run(answering(**{method: once}), method)

    assert calls
    assert binds
    problems = list(report.problems.values())
    assert bool(problems) == (method not in valid_for)
    for problem in problems:
        assert problem.startswith(f"plugin all failed in {method}: ")
        assert f"({__file__}:" in problem


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("method", HARMLESS)
def test_a_plugin_that_always_answers_wrongly_is_named_once_for_each_problem(method: str, wrong: str) -> None:
    answer, valid_for = WRONG[wrong]

    report, _ = run(answering(**{method: lambda self, *args: answer()}), method)

    assert (len(report.problems) == 1) == (method not in valid_for)


def per_node(value: Any) -> Callable[..., Any]:
    return lambda self, task, nodes: np.full(len(nodes), value)


WOULD_PASS: Final = [
    pytest.param("job_enqueueable", lambda self, job: False, "expected Vote.REJECT.*got bool False", id="no-vote"),
    pytest.param("job_enqueueable", lambda self, job: 2, "expected Vote.REJECT.*got int 2", id="number-for-a-vote"),
    pytest.param("job_pipelined", lambda self, job: "no", "expected Vote.REJECT.*got str 'no'", id="text-for-a-vote"),
    pytest.param("predicate", per_node(False), "0 where a node passes.*0, which is False, passes", id="mask"),
    pytest.param(
        "predicate", per_node(2), "1 to 1 where that one of its reasons refuses it, got 2", id="no-such-reason"
    ),
    pytest.param("predicate", per_node(-1), "0 where a node passes.*got -1", id="negative-verdict"),
    pytest.param("predicate", per_node(0.5), "0 where a node passes.*got 0.5", id="half-a-verdict"),
    pytest.param("static_predicate", per_node(np.nan), "0 where a node passes.*got nan", id="no-verdict"),
    pytest.param(
        "refusals", lambda self, task, nodes: np.zeros(len(nodes)), "an array of bool of shape", id="refusals"
    ),
    pytest.param("job_pipelined", lambda self, job: np.True_, "expected Vote.REJECT.*got bool", id="no-vote-of-numpy"),
    pytest.param("most_domains", lambda self: -1, "a whole number, 0 or more, got int -1", id="negative"),
    pytest.param(
        "job_starving", lambda self, job: np.nan, "a number, which is False if it is 0, got float nan", id="no"
    ),
    pytest.param(
        "queue_order", lambda self, *args: "a", "expected a number: negative.*got str 'a'", id="text-of-order"
    ),
    pytest.param("allocatable", lambda self, *args: "9", "a whole number, 0 or more, got str '9'", id="digits"),
    pytest.param("allocatable", lambda self, *args: np.nan, "a whole number, 0 or more, got float nan", id="nan"),
    pytest.param("missing", lambda self, job: False, "a whole number, 0 or more, got bool False", id="no-number"),
    pytest.param("overused", lambda self, queue: None, "expected True or False, got NoneType None", id="nothing"),
    pytest.param(
        "depends", lambda self, task: "NODE_ALONE", "expected a DependsOn.*got str 'NODE_ALONE'", id="depends"
    ),
    pytest.param("node_order", per_node(1j), "of numbers, got an array of complex128", id="complex-score"),
    pytest.param("surely_valid", lambda self: "yes", "expected a mask", id="surely-valid"),
    pytest.param("equivalence_keys", lambda self, ssn: np.full(len(ssn.tasks.status), "a"), "of integers", id="keys"),
]


@pytest.mark.parametrize(("method", "answer", "problem"), WOULD_PASS)
def test_an_answer_of_another_kind_does_not_pass_in_silence(method, answer, problem) -> None:
    refusing = {"predicate": per_node(1)} if method == "refusals" else {}
    report, _ = run(answering(**{**refusing, method: answer}), method)

    assert re.search(f"^plugin all failed in {method}: .*{problem}", report.problems["all", method])


def test_a_job_is_not_enqueued_if_the_vote_is_none() -> None:
    report, _ = run(answering(job_enqueueable=lambda self, job: False), "job_enqueueable")
    usual, _ = run(answering(), "job_enqueueable")

    assert report.jobs_enqueued == usual.jobs_enqueued - 1  # of the jobs with minResources, one fits


@pytest.mark.parametrize("reasons", [None, "too small", ("too small",), (None,)])
@pytest.mark.parametrize("attribute", ["reasons", "static_reasons"])
def test_a_predicate_without_reasons_places_nothing_and_is_told_how_to_state_them(attribute, reasons) -> None:
    report, binds = run(answering(**{attribute: reasons}), "predicate")

    assert binds == []
    assert f'it needs {attribute} = (Reason("my-plugin"' in report.problems["all", "__init__"]


def test_whole_numbers_of_any_type_are_verdicts_and_counts() -> None:
    plugin = answering(predicate=per_node(0.0), allocatable=lambda self, queue, task, wanted: np.float64(wanted))

    report, binds = run(plugin, "predicate")

    assert report.problems == {}
    assert binds


HARMLESS_TOO: Final = [
    pytest.param("allocatable", lambda self, *args: -1, lambda self, *args: 0, id="room-below-0"),
    pytest.param("allocatable", lambda self, *args: -0.5, lambda self, *args: 0, id="room-just-below-0"),
    pytest.param("allocatable", lambda self, *args: 1.9, lambda self, *args: 1, id="part-of-a-task"),
    pytest.param("missing", lambda self, job: -2, lambda self, job: 0, id="more-than-needed"),
    pytest.param("missing", lambda self, job: np.float64(1.5), lambda self, job: 1, id="part-of-a-task-is-missing"),
    pytest.param("job_enqueueable", lambda self, job: -1, lambda self, job: Vote.REJECT, id="reject"),
    pytest.param("job_enqueueable", lambda self, job: np.int64(0), lambda self, job: Vote.ABSTAIN, id="abstain"),
    pytest.param("job_pipelined", lambda self, job: 1, lambda self, job: Vote.PERMIT, id="permit"),
    pytest.param("job_starving", lambda self, job: 0, lambda self, job: False, id="nothing-is-starving"),
    pytest.param("job_starving", lambda self, job: 2.5, lambda self, job: True, id="much-is-starving"),
    pytest.param(
        "queue_order",
        lambda self, left, right: left.name > right.name,
        lambda self, left, right: int(left.name > right.name),
        id="comparison",
    ),
    pytest.param(
        "queue_order",
        lambda self, left, right: np.bool_(left.name > right.name),
        lambda self, left, right: int(left.name > right.name),
        id="comparison-of-numpy",
    ),
]


@pytest.mark.parametrize(("method", "answer", "stands_for"), HARMLESS_TOO)
def test_an_answer_with_one_possible_meaning_has_it(method, answer, stands_for) -> None:
    report, binds = run(answering(**{method: answer}), method)
    usual, usual_binds = run(answering(**{method: stands_for}), method)

    assert report.problems == {}
    assert binds == usual_binds
    assert report.jobs_enqueued == usual.jobs_enqueued


def test_the_reason_for_users_has_no_place_in_the_file_system_of_the_scheduler() -> None:
    report, _ = run(answering(job_valid=lambda self, job: True), "job_valid")

    (text,) = {job.message.partition(". ")[2] for job in report.jobs.values() if "failed" in job.message}
    assert text == (
        "plugin all failed in job_valid: expected None or a Reason (volcano_py.model.rejections), got bool True"
    )
