"""Rescheduling: pods leave busy nodes while others have headroom."""

from typing import Any

import msgspec
import pytest

from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Decision, Evict
from volcano_py.model.loads import NodeLoad
from volcano_py.plugins.rescheduling import Rescheduling
from volcano_py.scheduler import run_cycle
from volcano_py.testing import a_cluster, a_group, a_node, a_pod, a_policy

NOW = 10_000.0
LIMITS = {"thresholds": {"cpu": 20, "memory": 20}, "targetThresholds": {"cpu": 50, "memory": 50}}
DUE = Memory(times={"rescheduling": NOW - 301})


def plugin(**more: Any) -> dict[str, Any]:
    strategies = [{"name": "lowNodeUtilization", "params": LIMITS}]
    return {"name": "rescheduling", "arguments": {"strategies": strategies, **more}}


def pods(n: int = 4, node: str = "busy", **options: Any) -> list[Any]:
    """Pods of one core each on a node of ten."""
    return [a_pod(f"{node}-{i}", group="g", cpu=1, memory="1Gi", node=node, **options) for i in range(n)]


def sent_away(
    loads: dict[str, tuple[float, float]],
    *objects: Any,
    memory: Memory = DUE,
    age_s: float = 0,
    entry: dict[str, Any] | None = None,
    nodes: tuple[Any, ...] = (),
    group: Any = None,
) -> list[str]:
    """Return who is evicted, in order."""
    made = nodes or tuple(a_node(name, cpu=10, memory="10Gi") for name in ("busy", "calm", "other"))
    cluster = a_cluster(*made, group or a_group("g", min_available=0, phase="Running"), *objects)
    cluster.measured({name: NodeLoad(*load, NOW - age_s) for name, load in loads.items()}, 30.0)
    decisions: list[Decision] = []
    policy = a_policy("shuffle", [entry or plugin()])
    run_cycle(cluster.snapshot(), policy, CycleClock(NOW), 0, memory, lambda batch: decisions.extend(batch))
    return [one.task.name for one in decisions if isinstance(one, Evict)]


BUSY = {"busy": (75.0, 30.0), "calm": (10.0, 10.0), "other": (30.0, 30.0)}


def test_a_busy_node_is_emptied_until_it_is_below_its_target():
    assert len(sent_away(BUSY, *pods())) == 3  # 75 % less 10 % each: 65, 55, 45


@pytest.mark.parametrize(
    "loads",
    [
        pytest.param({"busy": (75.0, 30.0), "other": (30.0, 30.0)}, id="no-low-node"),
        pytest.param({"busy": (45.0, 30.0), "calm": (10.0, 10.0)}, id="no-high-node"),
        pytest.param({"busy": (10.0, 10.0), "calm": (10.0, 10.0)}, id="all-low"),
        pytest.param({}, id="nothing-measured"),
    ],
)
def test_nothing_happens_without_both_kinds_of_nodes(loads: dict[str, tuple[float, float]]):
    assert sent_away(loads, *pods()) == []


def test_a_cordoned_node_gives_no_headroom():
    nodes = (a_node("busy", cpu=10), a_node("calm", cpu=10, unschedulable=True))

    assert sent_away(BUSY, *pods(), nodes=nodes) == []


@pytest.mark.parametrize(
    "calm",
    [
        pytest.param(a_node("calm", cpu="500m", memory="10Gi"), id="too-small"),
        pytest.param(a_node("calm", cpu=10, memory="10Gi", taints=["gpu=yes:NoSchedule"]), id="tainted"),
        pytest.param(a_node("calm", cpu=10, memory="10Gi", labels={"disk": "hdd"}), id="not-selected"),
    ],
)
def test_no_pod_is_evicted_that_no_low_node_could_take(calm: Any):
    """Otherwise it would come back to its node, and go again after each interval."""
    spec = {"nodeSelector": {"disk": "ssd"}} if "disk" in calm.metadata.labels else None

    assert sent_away(BUSY, *pods(spec=spec), nodes=(a_node("busy", cpu=10, memory="10Gi"), calm)) == []


def test_no_more_pods_are_evicted_than_low_nodes_have_room_for():
    taken = a_pod("taken", cpu=8, node="calm", scheduler="other")

    assert len(sent_away(BUSY, *pods(), taken)) == 2


@pytest.mark.parametrize(("minimum", "count"), [(4, 0), (3, 1), (0, 3)])
def test_a_gang_keeps_its_minimum(minimum: int, count: int):
    group = a_group("g", min_available=minimum, phase="Running")

    assert len(sent_away(BUSY, *pods(), group=group)) == count


def test_a_pod_that_is_all_of_its_job_may_go():
    assert len(sent_away(BUSY, *pods(1), group=a_group("g", min_available=1, phase="Running"))) == 1


def test_a_role_keeps_its_minimum():
    group = a_group("g", min_available=2, min_task_member={"ps": 1, "w": 1}, phase="Running")
    server = a_pod("ps", group="g", role="ps", cpu=1, memory="1Gi", node="busy")
    workers = [a_pod(f"w{row}", group="g", role="w", cpu=1, memory="1Gi", node="busy", priority=9) for row in range(3)]

    assert sorted(sent_away(BUSY, server, *workers, group=group)) == ["w0", "w1"]


def test_old_measurements_do_not_count():
    assert sent_away(BUSY, *pods(), age_s=301) == []


def test_no_pod_is_evicted_once_the_headroom_is_used_up():
    nodes = (a_node("busy", cpu=10, memory="10Gi"), a_node("calm", cpu=3, memory="3Gi"))

    assert len(sent_away(BUSY, *pods(), nodes=nodes)) == 2  # (50 - 10) % of three cores are one and a fifth


def test_the_lowest_priority_goes_first_and_then_the_worst_quality():
    def of(name: str, priority: int, quality: str) -> Any:
        pod = a_pod(name, group="g", cpu=1, memory="1Gi", node="busy", priority=priority)
        return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, qos_class=quality))

    named = [of("a", 2, "BestEffort"), of("b", 1, "Guaranteed"), of("c", 1, "Burstable"), of("d", 1, "BestEffort")]

    assert sorted(sent_away(BUSY, *named)) == ["b", "c", "d"]
    assert sorted(sent_away({**BUSY, "busy": (62.0, 0.0)}, *named)) == ["c", "d"]


def test_evictions_keep_an_interval_that_starts_at_the_first_session():
    assert sent_away(BUSY, *pods(), memory=Memory()) == []
    assert sent_away(BUSY, *pods(), memory=Memory(times={"rescheduling": NOW - 300})) == []
    assert (
        len(sent_away(BUSY, *pods(), memory=Memory(times={"rescheduling": NOW - 61}), entry=plugin(interval="1m"))) == 3
    )


def test_without_limits_no_node_is_busy():
    assert sent_away({**BUSY, "busy": (100.0, 100.0)}, *pods(), entry={"name": "rescheduling"}) == []


def test_pods_that_are_not_preemptable_stay():
    assert sent_away(BUSY, *pods(annotations={"volcano.sh/preemptable": "false"})) == []


def test_a_wrong_argument_is_reported():
    said: list[str] = []

    args = Rescheduling.parse({"interval": "soon", "strategies": [{"name": "other"}]}, said.append)

    assert (args.interval, args.active) == (300.0, False)
    assert [text.partition(":")[0] for text in said] == ["argument interval", "argument strategies"]


def test_a_parameter_that_is_not_read_is_reported():
    """The design document of Volcano nests the limits."""
    said: list[str] = []
    params = {"nodeResourceUtilizationThresholds": LIMITS}

    Rescheduling.parse({"strategies": [{"name": "lowNodeUtilization", "params": params}]}, said.append)

    assert said == [
        "argument strategies: nodeResourceUtilizationThresholds of lowNodeUtilization is ignored; "
        "it knows thresholds and targetThresholds"
    ]


@pytest.mark.parametrize(
    "strategies",
    [
        pytest.param("lowNodeUtilization", id="no-list"),
        pytest.param([{"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": "20%"}}}], id="no-number"),
        pytest.param([{"name": "lowNodeUtilization", "params": {"thresholds": 20}}], id="no-map"),
    ],
)
def test_invalid_limits_refuse_the_configuration(strategies: Any):
    with pytest.raises(ValueError, match="argument strategies"):
        Rescheduling.parse({"strategies": strategies}, lambda _: None)
