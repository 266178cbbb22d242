"""What is still arriving is no verdict: users are told why a job waits when its pods have stopped to come."""

import pytest

from tests.scheduler.running import DEFAULT
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Bind, Decision, RecordEvent, SetPodCondition, SetPodGroupStatus
from volcano_py.scheduler import resolve, run_cycle
from volcano_py.testing import a_cluster, a_group, a_node, a_pod, a_queue, added, deleted, modified

START = 1_750_000_000.0


class Watched:
    """A cluster to which objects come while cycles run at times that the test chooses."""

    def __init__(self, *objects, begun=True):
        self.cache = a_cluster(
            a_node("n1", cpu=2), *objects, queues=[a_queue("default"), a_queue("shut", state="Closed")]
        )
        self.memory = Memory()
        self.told_in = None
        self.policy = resolve(parse_conf(DEFAULT + "  - name: overcommit\n", "conf"))
        if begun:
            self.cycle(-100.0)

    def add(self, *objects):
        for one in objects:
            added(self.cache, one)

    def cycle(self, seconds: float) -> list[Decision]:
        emitted: list[Decision] = []
        clock = CycleClock(START + seconds)
        self.memory, report = run_cycle(self.cache.snapshot(), self.policy, clock, 0, self.memory, emitted.extend)
        assert not report.failures
        self.told_in = report.tells_in
        return emitted

    def told(self, seconds: float) -> tuple[list[str], list[str]]:
        """Return what a cycle tells about the group, and about the pods."""
        emitted = self.cycle(seconds)
        messages = [one.message for one in emitted if isinstance(one, RecordEvent)]
        conditions = [one for status in emitted if isinstance(status, SetPodGroupStatus) for one in status.conditions]
        assert messages or not conditions
        pods = sorted(one.task.name for one in emitted if isinstance(one, SetPodCondition))
        return [message.partition(" tasks in gang")[0] for message in messages], pods


def pod(number: int, group: str = "g", **options):
    return a_pod(f"{group}-{number}", group=group, cpu=1, **options)


def test_a_gang_is_announced_once_its_pods_have_stopped_arriving() -> None:
    cluster = Watched()
    cluster.add(a_group("g", min_available=6))
    said = []
    for number in range(4):
        cluster.add(pod(number))
        said.append(cluster.told(0.2 * number))

    assert said == [([], [])] * 4
    assert cluster.told_in is not None
    assert 0.5 <= cluster.told_in < 0.6
    assert cluster.told(0.6 + cluster.told_in) == (["4/4"], ["g-0", "g-1", "g-2", "g-3"])
    assert cluster.told_in is None


def test_a_gang_whose_pods_keep_arriving_is_announced_every_two_seconds() -> None:
    cluster = Watched()
    cluster.add(a_group("g", min_available=100))
    said = {}
    for tick in range(26):
        cluster.add(pod(tick))
        groups, _ = cluster.told(0.2 * tick)
        if groups:
            said[round(0.2 * tick, 1)] = groups

    assert said == {2.0: ["11/11"], 4.2: ["22/22"]}


def test_phases_and_placement_do_not_wait_for_arrivals() -> None:
    cluster = Watched()
    cluster.add(a_group("g", min_available=2), pod(0), a_group("h", min_available=1), pod(0, "h"))
    emitted = cluster.cycle(0.0)

    assert {one.job.name: one.phase for one in emitted if isinstance(one, SetPodGroupStatus)} == {
        "g": "Inqueue",
        "h": "Inqueue",
    }
    assert [one.task.name for one in emitted if isinstance(one, Bind)] == ["h-0"]


def test_a_placed_job_needs_no_announcement() -> None:
    cluster = Watched()
    cluster.add(a_group("g", min_available=2), pod(0), pod(1))
    cluster.cycle(0.0)

    assert cluster.told_in is None
    assert cluster.memory.arrivals == {}


def test_jobs_older_than_the_scheduler_are_announced_at_once() -> None:
    cluster = Watched(a_group("g", min_available=6), pod(0), begun=False)

    assert cluster.told(0.0) == (["1/1"], ["g-0"])


def test_a_deleted_pod_is_no_arrival() -> None:
    cluster = Watched(a_group("g", min_available=6), pod(0), pod(1))
    deleted(cluster.cache, pod(1))

    assert cluster.told(0.0) == (["1/1"], ["g-0"])


def test_a_group_whose_pods_are_all_gone_is_announced_as_one_without_pods() -> None:
    cluster = Watched()
    cluster.add(a_group("g", queue="missing"), pod(0))
    assert cluster.told(0.0) == ([], [])

    deleted(cluster.cache, pod(0))

    said, _ = cluster.told(0.2)
    assert said == ['queue "missing" of PodGroup default/g does not exist: create it or change spec.queue']


def test_a_clock_that_is_set_back_suppresses_no_announcement() -> None:
    cluster = Watched()
    cluster.add(a_group("g", min_available=6), pod(0))
    cluster.cycle(0.0)

    assert cluster.told(-3600.0) == ([], [])
    assert cluster.told(-3599.4) == (["1/1"], ["g-0"])


def test_pods_without_a_group_may_still_get_one() -> None:
    cluster = Watched()
    cluster.add(a_pod("loose", cpu=1), pod(0, "later"))

    assert cluster.told(0.0) == ([], [])
    assert cluster.told(0.6)[1] == ["later-0", "loose"]


@pytest.mark.parametrize("cpu", [1, 2], ids=["alike", "and-asks-for-more"])
def test_a_pod_that_joins_a_group_arrives_there(cpu: int) -> None:
    cluster = Watched()
    cluster.add(a_pod("loose", cpu=1))
    cluster.told(0.0)
    assert cluster.told(0.6)[1] == ["loose"]

    modified(cluster.cache, a_pod("loose", cpu=cpu, group="g"))

    assert cluster.told(1.0) == ([], [])
    assert cluster.told(1.6)[1] == ["loose"]


def test_a_job_that_is_not_enqueued_is_announced_with_its_pods() -> None:
    cluster = Watched()
    cluster.add(a_group("g", min_available=2, min_resources={"cpu": 9}), pod(0))

    assert cluster.told(0.0) == ([], [])
    assert cluster.told(0.6)[0] == ["resource in cluster is overused: overused cpu", "1/1"]


def test_a_group_without_pods_is_announced_at_once() -> None:
    cluster = Watched()
    cluster.add(a_group("g", queue="shut"))

    assert cluster.told(0.0)[0] == ['queue "shut" is Closed, not Open: it takes no new job']
