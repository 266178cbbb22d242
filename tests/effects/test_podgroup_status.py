import asyncio
import random

import msgspec
import pytest

from tests.effects.objects import put_group
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects.podgroup_status import PodGroupStatusWriter, Shown, only_text_differs
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobKey, JobRecord
from volcano_py.runtime.clock import RealClock

KEY = JobKey("default", "g1")
UNSCHEDULABLE = GroupCondition("Unschedulable", True, "NotEnoughResources", "1/6 tasks", "session-1")
PODGROUPS = "podgroups.scheduling.volcano.sh"


def a_status(uid: str, phase: str = "Running", running: int = 0, conditions=()) -> SetPodGroupStatus:
    return SetPodGroupStatus(KEY, uid, phase, running, 0, 0, tuple(conditions))


def found(server: ApiServer) -> dict:
    group = server.get(PODGROUPS, "g1", "default")
    assert group is not None
    return group


def writes(server: ApiServer) -> int:
    return server.requests.count("patch", PODGROUPS, 200)


@pytest.fixture
def a_writer(server, client, supervisor, write_queue_metrics):
    def make(**more) -> PodGroupStatusWriter:
        def version_of(name: str) -> str:
            group = server.get(PODGROUPS, name.partition("/")[2], "default")
            return group["metadata"]["resourceVersion"] if group else ""

        more = {"version_of": version_of, **more}
        writer = PodGroupStatusWriter(client, write_queue_metrics, clock=RealClock(), rng=random.Random(1), **more)
        writer.start(supervisor)
        return writer

    return make


async def written(writer: PodGroupStatusWriter, *statuses: SetPodGroupStatus) -> None:
    for status in statuses:
        writer.put(status)
    assert await writer.drained(10)


async def test_phase_counts_and_conditions_are_written(server, a_writer):
    uid = put_group(server, "g1")

    await written(a_writer(), a_status(uid, "Inqueue", running=2, conditions=[UNSCHEDULABLE]))

    status = found(server)["status"]
    assert (status["phase"], status["running"]) == ("Inqueue", 2)
    (condition,) = status["conditions"]
    assert condition.pop("lastTransitionTime").endswith("Z")
    assert condition == {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "1/6 tasks",
        "transitionID": "session-1",
    }


async def test_conditions_of_others_stay(server, a_writer):
    uid = put_group(server, "g1", {"phase": "Pending", "conditions": [{"type": "Mine", "status": "True"}]})

    await written(a_writer(), a_status(uid, conditions=[UNSCHEDULABLE]))

    assert [condition["type"] for condition in found(server)["status"]["conditions"]] == ["Mine", "Unschedulable"]


async def test_a_condition_of_the_same_truth_keeps_its_time(server, a_writer):
    since = "2024-01-01T00:00:00Z"
    old = {"type": "Unschedulable", "status": "True", "message": "0/6 tasks", "lastTransitionTime": since}
    uid = put_group(server, "g1", {"phase": "Pending", "conditions": [old]})

    await written(a_writer(), a_status(uid, conditions=[UNSCHEDULABLE]))

    (condition,) = found(server)["status"]["conditions"]
    assert (condition["message"], condition["lastTransitionTime"]) == ("1/6 tasks", since)


async def test_a_status_that_is_already_written_is_not_repeated(server, a_writer):
    uid = put_group(server, "g1", {"phase": "Running", "running": 3})

    await written(a_writer(), a_status(uid, "Running", running=3))

    assert writes(server) == 0


async def test_another_session_id_alone_is_no_reason_to_write(server, a_writer):
    uid = put_group(server, "g1")
    writer = a_writer()
    await written(writer, a_status(uid, conditions=[UNSCHEDULABLE]))

    await written(writer, a_status(uid, conditions=[UNSCHEDULABLE._replace(transition_id="session-2")]))

    assert writes(server) == 1
    assert found(server)["status"]["conditions"][0]["transitionID"] == "session-1"


async def test_our_own_write_is_not_read_again_before_the_watch_shows_it(server, a_writer):
    uid = put_group(server, "g1")
    writer = a_writer(version_of=lambda _: "as before")
    await written(writer, a_status(uid))
    reads = server.requests.count("get", PODGROUPS)

    await written(writer, a_status(uid))

    assert (writes(server), server.requests.count("get", PODGROUPS)) == (1, reads)


async def test_a_group_known_to_be_blank_is_written_without_being_read(server, a_writer):
    uid = put_group(server, "g1")
    version = found(server)["metadata"]["resourceVersion"]
    shown = Shown(uid, version, "", 0, 0, 0)

    await written(a_writer(shown=lambda _: shown), a_status(uid))

    assert found(server)["status"]["phase"] == "Running"
    assert server.requests.count("get", PODGROUPS) == 0


async def test_after_a_write_of_ours_nothing_need_be_read(server, a_writer):
    uid = put_group(server, "g1")
    writer = a_writer()
    await written(writer, a_status(uid, "Inqueue", conditions=[UNSCHEDULABLE]))
    reads = server.requests.count("get", PODGROUPS)

    await written(writer, a_status(uid, "Running", running=1))

    status = found(server)["status"]
    assert (status["phase"], status["running"], len(status["conditions"])) == ("Running", 1, 1)
    assert server.requests.count("get", PODGROUPS) == reads


async def test_a_conflict_is_read_again_and_only_the_status_merged(server, a_writer):
    uid = put_group(server, "g1")
    stale = Shown(uid, found(server)["metadata"]["resourceVersion"], "", 0, 0, 0)
    changed = found(server) | {"spec": {"minMember": 7, "queue": "other"}}
    server.registry.update(server.resources.named(PODGROUPS), "default", "g1", changed)

    await written(a_writer(shown=lambda _: stale), a_status(uid, "Inqueue"))

    assert server.requests.count("patch", PODGROUPS, 409) == 1
    assert found(server)["spec"]["minMember"] == 7
    assert found(server)["status"]["phase"] == "Inqueue"


async def test_a_conflict_over_an_object_that_has_not_changed_is_tried_again_only_after_a_pause(server, a_writer):
    uid = put_group(server, "g1")
    fault = server.faults.add(Fault("reply", verb="patch", resource=PODGROUPS, code=409, times=2))
    writer = a_writer()

    writer.put(a_status(uid, "Inqueue"), 0.0)
    await asyncio.sleep(0.05)  # the first back-off is 0.1 s at least
    assert (fault.hits, server.requests.count("get", PODGROUPS)) == (1, 2)

    assert await writer.drained(5)
    assert fault.hits == 2
    assert found(server)["status"]["phase"] == "Inqueue"


async def test_a_version_that_was_refused_is_not_sent_again_by_the_next_attempts(server, a_writer):
    uid = put_group(server, "g1")
    stale = Shown(uid, found(server)["metadata"]["resourceVersion"], "", 0, 0, 0)
    server.registry.update(server.resources.named(PODGROUPS), "default", "g1", found(server) | {"spec": {"queue": "q"}})
    server.faults.add(Fault("reply", verb="patch", resource=PODGROUPS, code=422, skip=1, times=2))

    writer = a_writer(shown=lambda _: stale)

    for _ in range(3):
        await written(writer, a_status(uid, "Inqueue"))

    assert server.requests.count("patch", PODGROUPS, 409) == 1
    assert server.requests.count("patch", PODGROUPS, 422) == 2
    assert found(server)["status"]["phase"] == "Inqueue"


async def test_a_server_that_asks_to_wait_is_not_asked_again_by_the_next_cycles(server, a_writer):
    uid = put_group(server, "g1")
    server.faults.add(Fault("reply", verb="patch", resource=PODGROUPS, code=429, retry_after_s=30))
    writer = a_writer()

    for running in range(5):
        writer.put(a_status(uid, "Running", running=running), 0.0)
        await asyncio.sleep(0.05)

    assert server.requests.count("patch", PODGROUPS) == 1
    assert not await writer.drained(5)
    assert server.requests.count("patch", PODGROUPS) == 1


async def test_a_group_that_is_gone_or_replaced_is_left_alone(server, a_writer):
    put_group(server, "g1")

    await written(a_writer(), a_status("uid-of-the-old-one"))

    assert writes(server) == 0


async def test_the_newest_of_several_statuses_is_written(server, a_writer):
    uid = put_group(server, "g1")

    await written(a_writer(), a_status(uid, "Pending"), a_status(uid, "Inqueue"), a_status(uid, "Running"))

    assert found(server)["status"]["phase"] == "Running"
    assert writes(server) <= 2


async def test_a_status_of_a_group_that_was_replaced_is_not_sent_again_while_the_watch_shows_the_old_one(
    server, a_writer
):
    old = put_group(server, "g1")
    stale = found(server)["metadata"]["resourceVersion"]
    server.registry.delete(server.resources.named(PODGROUPS), "default", "g1")
    new = put_group(server, "g1")
    writer = a_writer(version_of=lambda _: stale, shown=lambda _: Shown(old, stale, "Pending", 0, 0, 0))

    for _ in range(5):
        await written(writer, a_status(old))
    assert server.requests.count("patch", PODGROUPS, 409) == 1

    await written(writer, a_status(new))
    assert found(server)["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("change", "only_text"),
    [
        pytest.param({}, True, id="a-new-message"),
        pytest.param({"phase": "Running"}, False, id="a-new-phase"),
        pytest.param({"running": 1}, False, id="a-new-number"),
        pytest.param({"uid": "another"}, False, id="another-of-the-same-name"),
        pytest.param(
            {"conditions": (GroupCondition("Unschedulable", True, "Other", "no"),)}, False, id="another-reason"
        ),
        pytest.param(
            {"conditions": (GroupCondition("Unschedulable", False, "Why", "no"),)}, False, id="another-status"
        ),
        pytest.param({"conditions": (GroupCondition("Scheduled", True, "Why", "yes"),)}, False, id="a-new-condition"),
    ],
)
def test_only_a_message_is_a_new_text(change: dict, only_text: bool) -> None:
    key = JobKey("default", "g")
    shown = GroupCondition("Unschedulable", True, "Why", "3 of 5")
    job = JobRecord(key, "u", "default", 1, phase="Inqueue", conditions=(shown,))
    status = SetPodGroupStatus(key, "u", "Inqueue", 0, 0, 0, (GroupCondition("Unschedulable", True, "Why", "2 of 5"),))

    assert only_text_differs(job, msgspec.structs.replace(status, **change)) is only_text
