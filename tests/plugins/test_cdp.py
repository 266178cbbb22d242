"""Cdp: what was placed a moment ago is left alone."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.framework.opened import opened
from volcano_py.api.meta import Condition
from volcano_py.framework.contract.extension_points import Preemptor, Purpose
from volcano_py.testing import a_group, a_node, a_pod

KEY = "volcano.sh/cooldown-time"
SCHEDULED = datetime(2026, 1, 1, tzinfo=UTC)


def goes(
    now_s: float, *, phase: str = "Running", scheduled: bool = True, purpose: Any = Purpose.PREEMPT, **pod: Any
) -> bool:
    """Say whether a pod that was scheduled at 0 s may go at a time."""
    made = a_pod("p", group="g1", cpu=1, node="n1", phase=phase, **pod)
    condition = Condition(type="PodScheduled", status="True" if scheduled else "False", last_transition_time=SCHEDULED)
    made = msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, conditions=[condition]))
    group = a_group(phase="Running", min_available=0)
    ssn = opened(a_node("n1"), group, made, plugins=["cdp"], now=SCHEDULED.timestamp() + now_s)
    preemptor = Preemptor(
        purpose, ssn.state.job(int(ssn.state.jobs.present()[0])), ssn.state.queues["default"], ssn.state.task_of(0)
    )
    return bool(ssn.eviction.allowed(preemptor, ssn.eviction.all).all())


@pytest.mark.parametrize("purpose", list(Purpose))
@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_pod_may_be_evicted_once_its_cool_down_is_over(where: str, purpose: Purpose):
    said = {where: {KEY: "1m"}}

    assert (goes(59, purpose=purpose, **said), goes(60, purpose=purpose, **said)) == (False, True)


def test_the_label_counts_before_the_annotation():
    assert goes(30, labels={KEY: "10s"}, annotations={KEY: "1h"})


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="nothing-said"),
        pytest.param({"annotations": {KEY: "soon"}}, id="no-duration"),
        pytest.param({"annotations": {KEY: "1m"}, "phase": "Pending"}, id="not-running"),
        pytest.param({"annotations": {KEY: "1m"}, "scheduled": False}, id="not-scheduled"),
    ],
)
def test_other_pods_are_not_protected(options: dict[str, Any]):
    assert goes(1, **options)
