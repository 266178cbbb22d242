from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row
from tests.reference.world import World, a_job, a_node, a_shape, amounts, tasks_of
from tests.scheduler.running import cycle
from volcano_py.framework.contract.extension_points import Vote
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.sla import Sla, SlaArgs

TIERS = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: sla
    arguments:
      sla-waiting-time: 1h
- plugins:
  - name: gang
  - name: overcommit
  - name: predicates
"""
ONE_TIER = TIERS.replace("- plugins:\n  - name: gang", "  - name: gang")


@pytest.mark.parametrize(
    ("arguments", "seconds", "warnings"),
    [
        pytest.param({}, None, 0, id="none"),
        pytest.param({"sla-waiting-time": "1h30m"}, 5400.0, 0, id="duration"),
        pytest.param({"sla-waiting-time": 1}, None, 1, id="a-number-is-left-aside"),
        pytest.param({"sla-waiting-time": "soon"}, None, 1, id="no-duration"),
        pytest.param({"sla-waiting-time": "-1h"}, None, 1, id="negative"),
        pytest.param({"sla-waiting-time": "0s"}, None, 1, id="zero"),
    ],
)
def test_the_waiting_time(arguments: Mapping[str, Any], seconds: float | None, warnings: int) -> None:
    told: list[str] = []

    assert Sla.parse(arguments, told.append) == SlaArgs(seconds)
    assert len(told) == warnings


def test_the_earlier_deadline_goes_first_and_jobs_without_one_last() -> None:
    jobs = (
        a_job("late", creation=0.0, waiting_time=300.0),
        a_job("never", creation=-9999.0),
        a_job("soon", creation=100.0, waiting_time=10.0),
    )
    ssn = a_session(World(jobs=jobs), Sla())

    keys = ssn.hooks.plugins()[0].job_order(ssn.state.jobs)  # type: ignore[attr-defined]

    assert [ssn.state.jobs.record(row).key.name for row in np.argsort(keys)] == ["soon", "late", "never"]
    assert np.isfinite(keys).all()


@pytest.mark.parametrize(
    ("waiting_time", "everybody", "vote"),
    [
        pytest.param(None, None, Vote.ABSTAIN, id="as-long-as-it-takes"),
        pytest.param(10.0, None, Vote.PERMIT, id="over"),
        pytest.param(100.0, None, Vote.PERMIT, id="over-just-now"),
        pytest.param(101.0, None, Vote.ABSTAIN, id="not-over"),
        pytest.param(None, 10.0, Vote.PERMIT, id="over-for-everybody"),
        pytest.param(101.0, 10.0, Vote.ABSTAIN, id="its-own-time-counts"),
    ],
)
def test_a_job_that_waited_long_enough_is_permitted(
    waiting_time: float | None, everybody: float | None, vote: Vote
) -> None:
    job = a_job("j", creation=-100.0, waiting_time=waiting_time)  # the session's time is 0
    ssn = a_session(World(jobs=(job,)), Sla(SlaArgs(everybody)))
    handle = ssn.state.job(job_row(ssn, "j"))
    plugin = ssn.hooks.plugins()[0]
    assert isinstance(plugin, Sla)

    assert (plugin.job_enqueueable(handle), plugin.job_pipelined(handle)) == (vote, vote)


@pytest.mark.parametrize(
    ("conf", "now", "phase"),
    [
        pytest.param(TIERS, 0.0, "Pending", id="still-waiting"),
        pytest.param(TIERS, 3600.0, "Inqueue", id="permitted-before-anybody-can-reject"),
        pytest.param(ONE_TIER, 3600.0, "Pending", id="in-one-tier-a-rejection-wins"),
    ],
)
def test_a_permit_enqueues_a_job_without_room_in_the_cluster(conf: str, now: float, phase: str) -> None:
    world = World(nodes=(a_node(cpu=1),), jobs=(a_job("j", min_available=1, min_resources=amounts(cpu=64)),))

    written = cycle(world, conf, now=now).groups.get("j")

    assert (written.phase if written else "Pending") == phase


def test_a_gang_that_waited_long_enough_stays_pipelined() -> None:
    """Two of three members get room that is being released; others must not take it from them."""
    world = World(
        nodes=(a_node("n1", cpu=2),),
        jobs=(
            a_job("gang", min_available=3, phase="Inqueue", creation=0.0),
            a_job("small", min_available=1, phase="Inqueue", creation=5000.0),
        ),
        tasks=(
            *tasks_of("gang", 3),
            *tasks_of("old", 1, a_shape(cpu=2), status=TaskStatus.RELEASING, node="n1"),
            *tasks_of("small", 1),
        ),
    )

    waiting = cycle(world, TIERS, now=1.0).messages
    over = cycle(world, TIERS, now=3600.0).messages

    promise = "Pod ns/{} can possibly be assigned to n1, once resource is released and minAvailable is satisfied"
    assert over["gang-0"] == promise.format("gang-0")
    assert over["small-0"].startswith("0/1 nodes are unavailable")
    assert waiting["small-0"] == promise.format("small-0")
