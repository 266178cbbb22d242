"""What was decided and will not be written is decided again, and nothing else."""

import pytest

from tests.scheduler.running import a_policy
from volcano_py.api import keys
from volcano_py.cache.cluster import ClusterCache
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Decision, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.clock import FakeClock
from volcano_py.scheduler import run_cycle
from volcano_py.simulator.cluster import SimulatedCluster
from volcano_py.testing import a_job, a_node, a_queue


class Stage:
    """Two jobs of one pod wait on a cluster without room; nothing that is decided is written."""

    def __init__(self) -> None:
        self.cache = ClusterCache(clock=FakeClock())
        self.cluster = SimulatedCluster(self.cache)
        self.cluster.put(a_queue(keys.DEFAULT_QUEUE), a_node("n0", cpu=1))
        for name in ("one", "two"):
            job = a_job(name, cpu=4, phase=keys.PHASE_INQUEUE)
            self.cluster.put(job.group, *job.pods)
        self._policy = a_policy()
        self._memory = Memory(seen=0)
        self._now = 1000.0
        self.cycle()  # nothing is said yet: more pods may come

    def cycle(self) -> list[Decision]:
        """Run a cycle and return the statuses and conditions that it decides."""
        batches: list[tuple[Decision, ...]] = []
        self._now += 1.0
        self._memory, _ = run_cycle(
            self.cache.snapshot(), self._policy, CycleClock(self._now), 0, self._memory, batches.append
        )
        return [one for batch in batches for one in batch if isinstance(one, SetPodCondition | SetPodGroupStatus)]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def conditions(decisions: list[Decision]) -> list[TaskRef]:
    return [one.task for one in decisions if isinstance(one, SetPodCondition)]


def statuses(decisions: list[Decision]) -> list[JobKey]:
    return [one.job for one in decisions if isinstance(one, SetPodGroupStatus)]


def test_what_is_on_its_way_is_not_decided_again(stage: Stage) -> None:
    first = stage.cycle()

    assert len(conditions(first)) == 2
    assert len(statuses(first)) == 2
    assert stage.cycle() == []


def test_the_reason_of_one_pod_is_lost(stage: Stage) -> None:
    task = conditions(stage.cycle())[1]

    stage.cache.write_lost(task)

    assert [conditions(stage.cycle()), stage.cycle()] == [[task], []]


def test_the_status_of_one_group_is_lost(stage: Stage) -> None:
    job = statuses(stage.cycle())[1]

    stage.cache.write_lost(job)
    second = stage.cycle()

    assert (statuses(second), conditions(second)) == ([job], [])
    assert stage.cycle() == []


def test_everything_may_be_lost(stage: Stage) -> None:
    first = stage.cycle()

    stage.cache.write_lost()

    second = stage.cycle()
    assert (conditions(second), statuses(second)) == (conditions(first), statuses(first))


def test_nothing_is_decided_again_about_what_is_gone(stage: Stage) -> None:
    stage.cycle()

    stage.cache.write_lost(TaskRef("default", "gone", "uid"))
    stage.cache.write_lost(JobKey("default", "gone"))
    stage.cache.write_lost(keys.DEFAULT_QUEUE)

    assert stage.cycle() == []
