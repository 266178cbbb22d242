"""A plugin of others may raise or answer anything: the cycle ends, and the failure names the plugin and its file."""

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from tests.testing.answers_all import HARMLESS, answering
from volcano_py.framework.contract import Plugin
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
MAY_BE_TRUE: Final = TOLD | {"overused", "job_starving", "preemptive"}


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
