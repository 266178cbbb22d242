"""Work on a simulated cluster: pods start, run and end in virtual time, and cycles run as in the daemon."""

from typing import Any

import pytest

from volcano_py.model.decisions import Evict
from volcano_py.simulator import Simulation, Timing, Work
from volcano_py.testing import a_job, a_node, a_pod, a_policy, a_queue
from volcano_py.testing.storage import a_claim, a_local_class, a_volume, with_claims

DEFAULT = a_policy("enqueue, allocate, backfill", ["priority", "gang", "predicates", "nodeorder"])


def work(name: str, *, runtime_s: float | None = 10.0, together: bool = True, **job: Any) -> Work:
    made = a_job(name, **job)
    return Work(name, made.pods, made.group, runtime_s, together)


def simulation(*objects: Any, policy: Any = DEFAULT, **timing: float) -> Simulation:
    return Simulation(policy, a_queue(), *objects, timing=Timing(**timing))


def test_a_gang_works_once_all_of_it_runs_and_then_ends():
    sim = simulation(a_node(cpu=4), start_s=1.0)
    sim.submit(work("train", tasks=3, cpu=1))

    timeline = sim.run(60)

    assert timeline.ended("train") == pytest.approx(0.02 + 1.0 + 10.0)
    assert timeline.running()["train"] == [(pytest.approx(1.02), 3), (pytest.approx(11.02), 0)]


def test_work_that_waits_for_room_begins_when_it_is_free():
    sim = simulation(a_node(cpu=4))
    sim.submit(work("first", tasks=3, cpu=1), work("second", tasks=2, cpu=1, created=1))

    timeline = sim.run(60)

    (first, second) = (timeline.ended("first"), timeline.ended("second"))
    assert first is not None
    assert second == pytest.approx(first + 0.02 + 10.0)


def test_independent_pods_end_one_by_one():
    sim = simulation(a_node(cpu=1))
    sim.submit(work("single", tasks=2, min_available=1, cpu=1, together=False))

    timeline = sim.run(60)

    assert [entry.time for entry in timeline.of("ended")] == [pytest.approx(10.02), pytest.approx(20.04)]


def test_work_without_an_end_runs_on():
    sim = simulation(a_node(cpu=4))
    sim.submit(work("service", tasks=2, cpu=1, runtime_s=None))

    timeline = sim.run(1000)

    assert timeline.ended("service") is None
    assert timeline.running_at(1000) == {"service": 2}


def test_pods_of_elastic_work_that_never_ran_are_cancelled_at_its_end():
    sim = simulation(a_node(cpu=2))
    sim.submit(work("elastic", tasks=5, min_available=2, cpu=1))

    timeline = sim.run(60)

    assert len(timeline.of("cancelled")) == 3
    assert timeline.ended("elastic") == pytest.approx(10.02)


def test_a_pod_without_a_group_can_run_too():
    sim = simulation(a_node())
    pod = a_pod("bare", group="", cpu=1)
    sim.submit(Work("bare", [pod], None, 5.0))

    sim.run(60)

    assert sim.state_of("bare") == {"waiting": 1, "bound": 0, "running": 0, "leaving": 0}  # nobody made it a PodGroup


def test_the_cluster_can_change_at_a_time():
    sim = simulation()
    sim.submit(work("train", tasks=1, cpu=1))
    sim.at(30, lambda cluster: cluster.put(a_node()))

    assert sim.run(60).ended("train") == pytest.approx(30.02 + 10)


def test_an_evicted_pod_leaves_and_comes_back_under_another_uid():
    sim = simulation(a_node(cpu=2), grace_s=2.0, recreate_s=1.0)
    sim.submit(work("train", tasks=2, cpu=1))
    sim.run(4)
    victim = next(iter(sim._states["train"].pods))
    sim._evict(Evict(victim, "n1", None, "preempt", "make room"))

    timeline = sim.run(60)

    assert [(entry.what, entry.time) for entry in timeline.entries if entry.what in ("evicted", "gone")] == [
        ("evicted", 4.0),
        ("gone", 6.0),
    ]
    again = timeline.of("submitted")[-1]
    assert (again.pod, again.time) == (str(victim), 7.0)
    assert timeline.ended("train") == pytest.approx(7.02 + 10)  # its time began anew


def test_names_of_work_are_unique():
    sim = simulation()
    sim.submit(work("train"))

    with pytest.raises(ValueError, match="work named train already exists"):
        sim.submit(work("train"))


def test_nothing_can_be_scheduled_in_the_past():
    sim = simulation()
    sim.run(5)

    with pytest.raises(ValueError, match="4 s is in the past: the time is 5 s"):
        sim.submit(work("late"), at=4)


def test_two_runs_are_alike():
    def once() -> list[Any]:
        sim = simulation(a_node("a", cpu=3), a_node("b", cpu=3), start_s=0.5)
        sim.submit(*(work(f"job-{i}", tasks=2, cpu=1, created=i) for i in range(5)))
        return sim.run(100).entries

    assert once() == once()


def test_claims_are_bound_as_their_pods_are_and_a_volume_serves_one_claim():
    claims = [a_claim(f"c{i}", storage_class="local") for i in range(2)]
    volume = a_volume("v0", storage_class="local", node="n2")
    sim = simulation(a_node("n1"), a_node("n2"), a_local_class(), volume, *claims)
    sim.submit(*(work(f"j{i}", cpu=1, created=i, spec=with_claims(f"c{i}")) for i in range(2)))

    timeline = sim.run(60)

    assert timeline.ended("j0") is not None
    assert timeline.ended("j1") is None
