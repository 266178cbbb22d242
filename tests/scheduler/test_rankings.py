"""What a cycle reports of its looks at all nodes."""

import itertools

from tests.scheduler.running import DEFAULT
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.scheduler import resolve, run_cycle
from volcano_py.testing import a_cluster, a_group, a_node, a_pod, a_queue


def report_of(*objects: object) -> CycleReport:
    """Run one cycle with a clock that goes on by a second whenever somebody looks at it."""
    cache = a_cluster(a_node("n1", cpu=4), *objects, queues=[a_queue("default")])
    ticks = itertools.count()
    clock = CycleClock(0.0, lambda: float(next(ticks)))
    policy = resolve(parse_conf(DEFAULT, "conf"))
    return run_cycle(cache.snapshot(), policy, clock, 0, Memory(), lambda _: None)[1]


def group(name: str, pods: int, cpu: float) -> list[object]:
    members = [a_pod(f"{name}-{number}", group=name, cpu=cpu) for number in range(pods)]
    return [a_group(name, min_available=pods, phase="Inqueue"), *members]


def test_pods_that_are_alike_share_one_look_at_all_nodes() -> None:
    report = report_of(*group("a", 2, 1), *group("b", 1, 0.5))

    assert report.tasks_placed == 3
    assert len(report.rankings) == 2
    assert all(finding > 0 and scoring is not None and scoring > 0 for finding, scoring in report.rankings)


def test_without_a_node_that_has_room_nothing_is_scored() -> None:
    report = report_of(*group("big", 1, 9))

    assert report.tasks_placed == 0
    assert report.rankings
    assert all(scoring is None for _, scoring in report.rankings)
