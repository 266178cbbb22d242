"""Verdicts are confirmed by reads that began after the review arrived, and reads are shared."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.admission.server.reviewing import PATH
from tests.daemon.cluster import serve_definitions
from volcano_py.admission.changing_queues import ChangingQueues
from volcano_py.admission.confirmation import Judge, LiveReads
from volcano_py.admission.contract import Options, Refusal, Request, Rule, Verdict, View
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.admission.queue_notes import QueueNotes
from volcano_py.admission.shared_reads import SharedReads
from volcano_py.admission.views import NamespaceView, QueueObject, QueueView
from volcano_py.api.meta import ObjectMeta
from volcano_py.apiserver import ApiServer
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.delivery import Event, EventType
from volcano_py.kube.resource import QUEUES
from volcano_py.runtime.clock import RealClock
from volcano_py.testing import a_namespace, a_queue, manifest


class Reading:
    """Reads that end when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.open: list[asyncio.Future[int]] = []

    async def __call__(self, key: str) -> int:
        self.begun.append(key)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.open.append(future)
        return await future

    async def end(self, value: int) -> None:
        await asyncio.sleep(0)
        self.open.pop(0).set_result(value)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def asked(shared: SharedReads[int], count: int, key: str = "a") -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(shared.get(key)) for _ in range(count)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_nobody_gets_a_read_that_began_before_it_asked() -> None:
    reading = Reading()
    shared = SharedReads(reading)
    (first,) = await asked(shared, 1)
    later = await asked(shared, 20)
    await reading.end(1)
    even_later = await asked(shared, 20)
    await reading.end(2)
    await reading.end(3)

    assert await first == 1
    assert {await task for task in later} == {2}
    assert {await task for task in even_later} == {3}
    assert reading.begun == ["a", "a", "a"]


async def test_objects_do_not_wait_for_each_other() -> None:
    reading = Reading()
    shared = SharedReads(reading)
    await asked(shared, 3, "a")
    (other,) = await asked(shared, 1, "b")
    reading.open[1].set_result(5)

    assert await other == 5
    reading.open[0].cancel()


async def test_one_who_gives_up_does_not_end_the_read_of_others() -> None:
    reading = Reading()
    shared = SharedReads(reading)
    (first,) = await asked(shared, 1)
    impatient, patient = await asked(shared, 2)
    impatient.cancel()
    await reading.end(1)
    await reading.end(2)

    assert (await first, await patient) == (1, 2)


async def test_a_failed_read_fails_for_those_who_share_it_and_not_for_others() -> None:
    reading = Reading()
    shared = SharedReads(reading)
    (first,) = await asked(shared, 1)
    (second,) = await asked(shared, 1)
    reading.open.pop(0).set_exception(errors.ConnectionFailed("get", "/x", "away"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await reading.end(2)

    with pytest.raises(errors.ConnectionFailed):
        await first
    assert await second == 2


# A judge over watches that never change, and a server


def open_only(request: Request, view: View, _: Options) -> Verdict:
    """Follow the chain of parents; every queue on it must be Open."""
    name = request.object["queue"]
    while name:
        queue = view.queue(name)
        if queue is None:
            return Verdict((Refusal(f"no {name}"),))
        if (state := queue["metadata"]["annotations"]["state"]) != "Open":
            return Verdict((Refusal(f"{name} is {state}"),))
        name = queue["spec"].get("parent", "")
    return Verdict()


def unless_closed(request: Request, view: View, options: Options) -> Verdict:
    """Let a queue pass that does not exist."""
    return open_only(request, view, options) if view.queue(request.object["queue"]) else Verdict()


def no_children(request: Request, view: View, _: Options) -> Verdict:
    found = tuple(str(child["metadata"]["name"]) for child in view.children(request.name))
    return Verdict(tuple(Refusal(name) for name in found))


def annotated(request: Request, view: View, _: Options) -> Verdict:
    return Verdict(warnings=tuple(view.namespace_annotations(request.namespace).values()))


class Setting:
    """A server, a client that counts its reads, and watches that show what a test puts there."""

    def __init__(self, server: ApiServer, client: ApiClient) -> None:
        self.server, self.client = server, client
        self.registry = CollectorRegistry()
        self.queues, self.namespaces = QueueView(), NamespaceView()
        self._metrics = AdmissionMetrics(self.registry)
        self.guarded = False
        self.changing: ChangingQueues | None = self.replica()

    def replica(self, namespace: str = "default") -> ChangingQueues:
        """Return what another replica knows of changing queues."""
        notes = QueueNotes(self.client, namespace, RealClock())
        return ChangingQueues(notes, RealClock(), lambda: self.guarded)

    def put(self, name: str, state: str = "Open", parent: str = "", watched: str | None = None) -> None:
        """Create a queue; ``watched`` is the state in the watch, None if the watch does not show it."""
        body = manifest(a_queue(name), metadata={"annotations": {"state": state}})
        body["spec"] = {"weight": 1, **({"parent": parent} if parent else {})}
        self.server.create(body)
        if watched is not None:
            self.watch(name, watched, body["spec"])

    def watch(self, name: str, state: str, spec: Mapping[str, Any]) -> None:
        meta = ObjectMeta(name=name, uid=self.uid(name), annotations={"state": state})
        queue = QueueObject(metadata=meta, spec=dict(spec))
        self.queues.on_events([Event(EventType.ADDED, name, "", queue, 0.0, listed=False)])

    def uid(self, name: str) -> str:
        found = self.server.get(QUEUES.label, name)
        return "" if found is None else str(found["metadata"]["uid"])

    def read(self) -> float:
        samples = (sample for metric in self.registry.collect() for sample in metric.samples)
        return sum(one.value for one in samples if one.name == "volcano_py_admission_live_reads_total")

    def judge(self, rule: Rule, changing: ChangingQueues | None = None) -> Judge:
        live = LiveReads(self.client, self._metrics, self.queues, changing or self.changing)
        return Judge({PATH: rule, "/queues/validate": rule}, Options, self.queues, self.namespaces, live, self._metrics)

    async def judged(self, rule: Rule, request: Request) -> list[str]:
        """Return the messages of the refusals, or the warnings."""
        path = "/queues/validate" if request.operation == "DELETE" else PATH
        verdict = await settled(self.judge(rule)(WEBHOOKS[path], request, dry_run=True))
        return [refusal.message for refusal in verdict.refusals] or list(verdict.warnings)


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    async with ApiServer() as server:
        serve_definitions(server)
        async with ApiClient(Credentials(server.url)) as client:
            yield Setting(server, client)


async def settled(found: Verdict | Awaitable[Verdict]) -> Verdict:
    return found if isinstance(found, Verdict) else await found


def into(queue: str) -> Request:
    return Request("CREATE", "default", "train", {"queue": queue})


def closing(queue: str) -> Request:
    return Request("UPDATE", "", queue, {"status": {"state": "Closed"}}, {"status": {"state": "Open"}}, "status")


async def test_a_queue_that_was_just_created_is_found(setting: Setting) -> None:
    setting.put("new")

    assert await setting.judged(open_only, into("new")) == []


async def test_a_queue_that_was_just_deleted_is_not_found(setting: Setting) -> None:
    setting.watch("gone", "Open", {})

    assert await setting.judged(open_only, into("gone")) == ["no gone"]


async def test_a_queue_that_was_just_closed_is_closed_and_one_that_was_opened_is_open(setting: Setting) -> None:
    setting.put("closed", "Closed", watched="Open")
    setting.put("opened", "Open", watched="Closed")

    assert await setting.judged(open_only, into("closed")) == ["closed is Closed"]
    assert await setting.judged(open_only, into("opened")) == []


async def test_a_chain_of_parents_that_no_watch_shows_is_followed(setting: Setting) -> None:
    setting.put("q0", "Closed")
    for index in range(1, 9):
        setting.put(f"q{index}", parent=f"q{index - 1}")

    assert await setting.judged(open_only, into("q8")) == ["q0 is Closed"]
    assert setting.read() <= 5


async def test_without_a_namespace_for_notes_queues_are_listed(setting: Setting) -> None:
    setting.put("parent", watched="Open")
    setting.put("child", parent="parent")
    setting.changing = setting.replica("nowhere")
    live = LiveReads(setting.client, AdmissionMetrics(CollectorRegistry()), setting.queues, setting.changing)

    await live.prepare()
    setting.changing = live.changing

    assert live.changing is None
    assert await setting.judged(no_children, Request("DELETE", name="parent")) == ["child"]


@pytest.mark.parametrize("noted", [True, False])
async def test_children_that_were_just_created_or_deleted_count_right(setting: Setting, noted: bool) -> None:
    setting.put("parent", watched="Open")
    setting.put("child", parent="parent")
    setting.watch("gone", "Open", {"parent": "parent"})
    if noted:
        queues = WEBHOOKS["/queues/validate"]
        judge = setting.judge(lambda *_: Verdict())
        for name, parent, dry_run in (("child", "parent", False), ("never", "parent", False), ("x", "parent", True)):
            asked = Request("CREATE", name=name, object={"spec": {"parent": parent}})
            await settled(judge(queues, asked, dry_run))
        assert await setting.replica().children("parent") == {"child", "never"}
    else:
        setting.changing = None

    assert await setting.judged(no_children, Request("DELETE", name="parent")) == ["child"]


@pytest.mark.parametrize("guarded", [True, False])
async def test_work_for_a_queue_that_does_not_change_needs_no_read_of_the_queue(
    setting: Setting, guarded: bool
) -> None:
    """The watch is believed here, though it is wrong: the queue was closed past the webhooks."""
    setting.put("q", "Closed", watched="Open")
    setting.guarded = guarded

    assert await setting.judged(open_only, into("q")) == ([] if guarded else ["q is Closed"])
    assert setting.read() == (0 if guarded else 1)


@pytest.mark.parametrize("request_", [Request("DELETE", name="q"), closing("q")], ids=["deleted", "closed"])
async def test_a_change_that_another_replica_has_admitted_is_seen(setting: Setting, request_: Request) -> None:
    setting.put("q", "Closed", watched="Open")
    setting.guarded = True
    await setting.judged(open_only, into("q"))
    other = setting.judge(lambda *_: Verdict(), setting.replica())
    queues = WEBHOOKS["/queues/validate"]

    await settled(other(queues, request_))

    assert await setting.judged(open_only, into("q")) == ["q is Closed"]


async def test_refusals_and_other_kinds_are_never_left_to_the_watch(setting: Setting) -> None:
    setting.put("opened", "Open", watched="Closed")
    setting.guarded = True

    assert await setting.judged(open_only, into("opened")) == []
    setting.put("new", "Closed")
    assert await setting.judged(unless_closed, into("new")) == ["new is Closed"]
    setting.put("other", "Closed", watched="Open")
    verdict = await settled(setting.judge(open_only)(WEBHOOKS["/queues/validate"], into("other")))
    assert [refusal.message for refusal in verdict.refusals] == ["other is Closed"]


async def test_an_annotation_of_a_namespace_is_read(setting: Setting) -> None:
    setting.server.create(manifest(a_namespace("team"), metadata={"annotations": {"queue": "teams"}}))
    setting.namespaces.annotations["team"] = {"queue": "old"}

    assert await setting.judged(annotated, Request("CREATE", "team")) == ["teams"]


@pytest.mark.parametrize(
    "asked", [Request("UPDATE", "default", "a", {"spec": {}}, {}, "status"), Request("DELETE", "default", "a")]
)
async def test_subresources_and_operations_that_a_path_does_not_judge_are_allowed(
    setting: Setting, asked: Request
) -> None:
    judge = setting.judge(lambda *_: Verdict((Refusal("bad"),)))

    assert (await settled(judge(WEBHOOKS["/jobs/validate"], asked))).allowed
    assert not (await settled(judge(WEBHOOKS["/jobs/validate"], into("any")))).allowed


async def test_what_rests_on_nothing_reads_nothing(setting: Setting) -> None:
    await setting.judged(lambda *_: Verdict(), into("any"))
    await setting.judged(open_only, into(""))

    assert setting.read() == 0


async def test_reviews_that_come_together_share_reads(setting: Setting) -> None:
    setting.put("all", watched="Open")
    judge = setting.judge(open_only)
    verdicts = await asyncio.gather(*(settled(judge(WEBHOOKS[PATH], into("all"))) for _ in range(100)))

    assert all(verdict.allowed for verdict in verdicts)
    assert setting.read() <= 2


async def test_without_the_server_there_is_no_verdict(setting: Setting) -> None:
    setting.watch("any", "Open", {})
    await setting.server.stop()

    with pytest.raises(errors.ApiError):
        await setting.judged(open_only, into("any"))


@pytest.mark.parametrize("problem", [errors.NotFound, errors.Conflict])
async def test_a_change_that_cannot_be_noted_is_not_admitted(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, problem: type[errors.ApiError]
) -> None:
    written = 0

    async def never(*_: object, **__: object) -> None:
        nonlocal written
        written += 1
        raise problem("patch", "/api/v1/namespaces/default/configmaps/x", "somebody interferes")

    monkeypatch.setattr(setting.client, "patch", never)
    judge = setting.judge(lambda *_: Verdict())

    with pytest.raises(problem):
        await settled(judge(WEBHOOKS["/queues/validate"], Request("DELETE", name="q")))
    assert written == 10
