"""The steady load: what is drawn, what the times of pods say, which schedulers run, and a small case in full."""

import asyncio
import shutil
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml

from benchmarks.steady import audit, halves, samples
from benchmarks.steady.kubelet import Kubelet
from benchmarks.steady.load import MEAN_SIZE, NEVER, SLOTS_PER_NODE, Gang, Load, Plan, draw
from benchmarks.steady.measure import served_writes
from benchmarks.steady.schedulers import FOLDER, order, program, read
from benchmarks.steady.times import PodTimes, TimesLog
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PODGROUPS, Resource

WORKLOAD = yaml.safe_load((FOLDER.parent / "workloads" / "steady.yaml").read_text())
LOAD = Load(nodes=20, waiting=2000, minutes=10, rate=10)


def gang(number: int, size: int) -> Gang:
    return Gang(number, size, "q0", "low", 1900)


def a_plan(*sizes: int) -> Plan:
    return Plan((), tuple(gang(number, size) for number, size in enumerate(sizes)), ())


# The load


def test_equal_seeds_give_equal_plans() -> None:
    assert draw(LOAD) == draw(LOAD)
    assert draw(LOAD) != draw(Load(**{**vars(LOAD), "seed": 2}))


def test_running_gangs_fill_every_slot_and_as_many_pods_arrive_as_end() -> None:
    plan = draw(LOAD)

    assert sum(one.size for one in plan.running) == LOAD.nodes * SLOTS_PER_NODE
    assert not any(one.never for one in plan.running)
    arriving = sum(one.size for one in plan.arriving if not one.never) / LOAD.seconds
    assert arriving == pytest.approx(LOAD.slots / LOAD.mean_life_s, rel=0.1)


def test_arrivals_are_of_all_kinds() -> None:
    arriving = draw(LOAD).arriving

    assert {one.size for one in arriving} == {1, 2, 4, 8, 16, 32, 64}
    assert sum(one.size for one in arriving) / len(arriving) == pytest.approx(MEAN_SIZE, rel=0.1)
    assert len(arriving) == pytest.approx(LOAD.rate * LOAD.seconds, rel=0.1)
    assert {one.queue for one in arriving} == {"q0", "q1", "q2", "q3"}
    assert {one.priority for one in arriving} == {"low", "middle", "high"}
    never = [one for one in arriving if one.never]
    assert len(never) / len(arriving) == pytest.approx(NEVER, rel=0.3)
    assert {bool(one.selector) for one in never} == {True, False}  # a label that no node has, or too much CPU


def test_gangs_that_never_run_can_be_left_out() -> None:
    plan = draw(Load(**{**vars(LOAD), "never": 0.0}))

    assert not any(one.never for one in plan.gangs)


@pytest.mark.parametrize("never", [-0.1, 1.0, float("nan")])
def test_a_share_of_gangs_that_is_none_is_refused(never: float) -> None:
    with pytest.raises(SystemExit, match="--never"):
        Load(nodes=1, waiting=1, minutes=1, rate=1, never=never)


class _Server:
    """A client whose server accepts everything; it notes which objects were created."""

    def __init__(self, pods: int) -> None:
        self.created: list[str] = []
        self.left = pods
        self.all_ended = asyncio.Event()

    async def create(self, resource: Resource, body: dict[str, Any], *_: object, **__: object) -> None:
        if resource is PODGROUPS:
            self.created.append(body["metadata"]["name"])

    async def patch(self, *_: object, **__: object) -> None:
        self.left -= 1
        if not self.left:
            self.all_ended.set()

    async def delete(self, *_: object, **__: object) -> None: ...


async def test_in_a_balanced_run_a_gang_arrives_once_as_many_pods_have_ended() -> None:
    plan = draw(Load(**{**vars(LOAD), "balanced": True}))
    ended = [Gang(10_000 + number, 1, "q0", "low", 1900, life_s=0.0) for number in range(70)]
    server = _Server(len(ended))
    kubelet = Kubelet(cast(ApiClient, server), [*plan.gangs, *ended], TimesLog())
    kubelet.begin(Plan(tuple(ended), (), plan.arriving, plan.balanced), time.monotonic())

    worker = asyncio.create_task(kubelet.work())
    async with asyncio.timeout(20):
        await server.all_ended.wait()
    await asyncio.sleep(0.1)  # for a gang too many
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker

    arrived = [one for one in plan.arriving if one.name in server.created]
    assert arrived == list(plan.arriving[: len(arrived)])
    pods = sum(one.size for one in arrived)
    assert pods <= len(ended) < pods + plan.arriving[len(arrived)].size


# What the times say


def test_a_pod_waits_from_the_moment_its_whole_gang_had_room() -> None:
    pods = {
        "gang-0-0": PodTimes(0, bound=0, ended=10),
        "gang-1-0": PodTimes(0, bound=0, ended=11),
        "gang-2-0": PodTimes(1, bound=11.5),
        "gang-2-1": PodTimes(2, bound=11.7),
    }

    whole = samples.room_to_bind(a_plan(1, 1, 2), pods, 2, (5, 20), gangs=True)
    one_by_one = samples.room_to_bind(a_plan(1, 1, 2), pods, 2, (5, 20), gangs=False)

    assert whole.seconds == pytest.approx([0.5, 0.7])  # room for two since 11
    assert one_by_one.seconds == pytest.approx([1.5, 1.7])  # room for one since 10, and never less than one since
    assert whole.without_room == one_by_one.without_room == 0


def test_room_that_others_took_does_not_count_and_neither_does_time_before_creation() -> None:
    pods = {
        "gang-0-0": PodTimes(0, bound=3),  # one slot was free from the start
        "gang-1-0": PodTimes(0, bound=3.5, ended=10),  # and a second one
        "gang-2-0": PodTimes(0, bound=10.25),  # takes the room of 10
        "gang-3-0": PodTimes(4, bound=12.5),
    }
    pods["gang-0-0"].ended = 12
    late = {"gang-0-0": PodTimes(7, bound=7.5)}

    assert samples.room_to_bind(a_plan(1, 1, 1, 1), pods, 2, (5, 20), gangs=True).seconds == [0.25, 0.5]
    assert samples.room_to_bind(a_plan(1), late, 2, (5, 20), gangs=True).seconds == [0.5]


def test_a_bind_without_room_is_counted() -> None:
    pods = {"gang-0-0": PodTimes(0, bound=1), "gang-1-0": PodTimes(0, bound=2)}

    found = samples.room_to_bind(a_plan(1, 1), pods, 1, (0, 5), gangs=True)

    assert found.without_room == 1


def test_a_pod_without_a_reason_counts_with_its_age() -> None:
    pods = {
        "gang-0-0": PodTimes(1, reason=1.5),
        "gang-1-0": PodTimes(2),
        "gang-2-0": PodTimes(3, bound=3.1),  # bound at once: needs no reason
        "gang-3-0": PodTimes(99),  # came after the span
    }

    found = samples.creation_to_reason(a_plan(1, 1, 1, 1).gangs, pods, (0, 10), 12)

    assert found.seconds == [0.5, 10]
    assert found.missing == 1


def test_slots_and_what_waits_over_time() -> None:
    pods = {
        "gang-0-0": PodTimes(0, bound=0, ended=3),
        "gang-1-0": PodTimes(0, bound=1),
        "gang-1-1": PodTimes(0, bound=2),
        "gang-2-0": PodTimes(2.5),
    }

    assert samples.full(pods, 4, [0.5, 2, 3]) == [0.25, 0.75, 0.5]
    assert samples.waiting(a_plan(1, 2, 1).gangs, pods, [0.5, 1.5, 2, 2.5]) == [1, 1, 0, 1]
    assert samples.waiting_pods(pods, [0.5, 1.5, 2, 2.5]) == [2, 1, 0, 1]


def test_marks_are_ordered() -> None:
    assert samples.marks([n / 1000 for n in range(1000)]) == {"p50": 500, "p99": 990, "worst": 999, "n": 1000}
    assert samples.marks([]) == {"n": 0}


def test_only_the_first_time_of_a_state_is_noted() -> None:
    now = [0.0]
    log = TimesLog(lambda: now[0])
    for at, state in enumerate([("", "Pending", ""), ("", "Pending", "False"), ("n", "Pending", "True")] * 2):
        now[0] = float(at)
        log.note("a", *state)

    assert log.pods == {"a": PodTimes(0, reason=1, bound=2)}
    assert log.without_reason(["a", "unseen"]) == 1


def test_the_audit_log_says_when_the_server_got_a_binding_and_had_answered_the_rest() -> None:
    def line(
        verb: str, subresource: str, received: float, answered: float, *, code: int = 200, status: Any = None
    ) -> bytes:
        return msgspec.json.encode(
            {
                "stage": "ResponseComplete",
                "verb": verb,
                "objectRef": {"resource": "pods", "subresource": subresource, "namespace": "steady", "name": "a-0"},
                "responseStatus": {"code": code},
                "requestObject": None if status is None else {"status": status},
                "requestReceivedTimestamp": datetime.fromtimestamp(received, UTC).isoformat(),
                "stageTimestamp": datetime.fromtimestamp(answered, UTC).isoformat(),
            }
        )

    unschedulable = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    log = [
        line("create", "", 1000.0, 1000.25, code=201),
        line("patch", "status", 1001.0, 1001.5, status=unschedulable),
        line("update", "status", 1002.0, 1002.5, status={"phase": "Pending", **unschedulable}),  # a newer text
        line("create", "binding", 1003.0, 1003.5, code=409),
        line("create", "binding", 1004.0, 1004.5, code=201),
        line("patch", "status", 1005.0, 1005.5, status={"phase": "Running", "conditions": [{"type": "Ready"}]}),
        line("patch", "status", 1006.0, 1006.5, status={"phase": "Succeeded"}),
    ]
    seen = {"a-0": PodTimes(3.0, bound=9.0), "b-0": PodTimes(4.0, bound=5.0)}

    found = audit.times(log, seen, -1000.0)

    assert found == {"a-0": PodTimes(0.25, 1.5, 4.0, 6.5), "b-0": PodTimes(4.0, bound=5.0)}
    assert seen["a-0"] == PodTimes(3.0, bound=9.0)


def test_writes_are_read_from_the_metrics_of_an_api_server() -> None:
    pods = 'apiserver_request_total{code="%d",group="",resource="pods",subresource="%s",verb="%s",version="v1"} %d\n'
    leases = 'apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",verb="PUT"} 5\n'
    binds = pods % (201, "binding", "POST", 7) + pods % (409, "binding", "POST", 1)

    assert served_writes(binds + pods % (200, "", "LIST", 9) + leases) == {("create", "pods/binding"): 8}


# Schedulers


def test_two_schedulers_run_as_a_b_b_a() -> None:
    ours, other = read(FOLDER / "volcano-py.yaml"), read(FOLDER / "kube-scheduler.yaml")

    assert [one.name[0] for one in order([ours, other], 1)] == ["v", "k", "k", "v"]


def test_a_missing_program_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)

    found, missing = halves.available([FOLDER / "volcano-py.yaml", FOLDER / "kube-scheduler.yaml"])

    assert [one.name for one in found] == ["volcano-py"]
    assert "python -m tests.controlplane.build kube-scheduler" in missing["kube-scheduler"]
    assert missing["kube-scheduler"] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        pytest.param("name: a", "missing required field `command`", id="no-command"),
        pytest.param("{name: a, command: []}", "command is empty", id="empty-command"),
        pytest.param("{name: a, command: [a], comand: b}", "unknown field `comand`", id="misspelt"),
        pytest.param("{name: a, command: [a], stop: {signal: SIGNONE}}", "SIGNONE", id="no-such-signal"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, text: str, mistake: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)

    with pytest.raises(ValueError, match=mistake):
        read(file)


@pytest.mark.timeout(400)
def test_a_small_case_on_the_embedded_api_server(tmp_path: Path) -> None:
    own = yaml.safe_load((FOLDER / "volcano-py.yaml").read_text())
    own |= {"name": "mine", "conf": str(FOLDER.parents[1] / "conf" / "built-in.yaml"), "stop": {"signal": "SIGINT"}}
    own["command"][0] = str(program("vc-scheduler"))
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(own))
    options = {"size": "tiny", "scheduler": [file], "only": ["mine"], "once": True}

    for minutes in (0.05, 0.2, 0.8):  # on a machine without CPU to spare, little happens in three seconds
        (row,) = halves.run({**WORKLOAD, "options": {**options, "minutes": minutes}})
        room, reason = row["room_to_bind_ms"], row["creation_to_reason_ms"]
        if room["n"] and reason["n"] and row["cycles_per_s"]:
            break

    assert row["scheduler"] == "mine"
    assert 0 < room["n"] <= sum(one.size for one in draw(Load(**{key: row[key] for key in vars(LOAD)})).gangs)
    assert 0 <= room["p50"] <= room["p99"] <= room["worst"]
    assert row["without_room"] == 0
    assert 0 < reason["p50"] <= reason["worst"]
    assert 0 < row["slots_taken"] <= 1
    assert 0 < row["writes_per_bind"]["create pods/binding"] < 2  # 1, but for those under way at both ends of the span
    assert "create pods" not in row["writes_per_bind"]  # the driver's own writes are not the scheduler's
    assert row["cycles_per_s"] > 0
    assert row["cores"] > 0
    assert row["rss_mib"]["most"] >= row["rss_mib"]["end"] > 20
    assert len(row["series"]["at_s"]) == len(row["series"]["full"][0]) == len(row["series"]["rss_mib"][0])
