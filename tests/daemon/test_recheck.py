"""What is overdue is read again: nobody is left out for another one's sake, and better knowledge counts."""

from collections.abc import Callable

import pytest

from volcano_py.api.core import Pod
from volcano_py.cache.cluster import ClusterCache
from volcano_py.daemon import recheck
from volcano_py.kube import errors
from volcano_py.ledger.ledger import Patience
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import a_cluster, a_job, a_node, a_pod, deleted, modified
from volcano_py.writing.throttled_log import ThrottledLog

JOB = JobKey("default", "j1")
UNREADABLE = errors.UnexpectedAnswer("get", "/api/v1/namespaces/default/pods/j1-0", "not a Pod")
AWAY = errors.ConnectionFailed("get", "/api/v1/namespaces/default/pods/j1-0", "cannot connect")
GONE = errors.NotFound("get", "/api/v1/namespaces/default/pods/j1-0", "gone", status=404)


class Counted:
    def expired(self) -> None:
        pass


class Client:
    """Answers as it is told to, by the name of the pod; what is a function is called first."""

    def __init__(self, answer: Callable[[str], Pod]):
        self.asked: list[str] = []
        self._answer = answer

    async def get(self, resource, name, into, **options):
        self.asked.append(name)
        return self._answer(name)


class Overdue:
    """Binds of the pods of one job that were sent and never confirmed."""

    def __init__(self, pods: int):
        self.clock = FakeClock()
        self.refs = [TaskRef("default", f"j1-{number}", f"uid-default-j1-{number}") for number in range(pods)]
        self.cache: ClusterCache = a_cluster(
            a_node("n1", cpu=8), a_job("j1", tasks=pods, cpu=1), clock=self.clock, patience=Patience(1, 1)
        )
        self.assume(*self.refs)
        self.kind = recheck._Kind(self.cache.binds, lambda task: False)
        self.throttled_log = ThrottledLog("x", self.clock)

    def assume(self, *refs: TaskRef) -> None:
        self.cache.binds.assume(tuple(Bind(ref, "n1", JOB) for ref in refs), self.cache.token)
        for ref in refs:
            self.cache.binds.sent(ref)
            self.cache.binds.acknowledged(ref)

    async def round(self, client: Client, after_s: float = 2.0) -> None:
        self.clock.advance(after_s)
        await recheck._recheck(client, self.kind, Counted(), self.throttled_log)
        self.cache.validate()

    @property
    def idle(self) -> float:
        return float(self.cache.snapshot().nodes.idle[0, 0])


@pytest.mark.parametrize("bound", [True, False], ids=["bound", "not-bound"])
async def test_a_pod_deleted_during_the_recheck_stays_deleted(bound: bool) -> None:
    overdue = Overdue(1)
    pod = a_pod("j1-0", group="j1", cpu=1, **({"node": "n1"} if bound else {}))

    def read_then_deleted(name: str) -> Pod:
        deleted(overdue.cache, pod)
        return pod

    await overdue.round(Client(read_then_deleted))

    assert overdue.cache.store.task(overdue.refs[0].uid) is None
    assert overdue.idle == 8000


async def test_an_old_recheck_does_not_undo_a_newer_bind() -> None:
    overdue = Overdue(1)
    (ref,) = overdue.refs

    def read_then_bound_anew(name: str) -> Pod:
        overdue.cache.binds.failed(ref, "refused")
        overdue.clock.advance(0.1)
        overdue.assume(ref)
        return a_pod("j1-0", group="j1", cpu=1)

    await overdue.round(Client(read_then_bound_anew))

    place = overdue.cache.store.task(ref.uid)
    assert place is not None
    assert (place.status, place.node) == (TaskStatus.BINDING, "n1")


async def test_an_event_during_the_recheck_takes_precedence() -> None:
    overdue = Overdue(1)

    def read_then_shown(name: str) -> Pod:
        modified(overdue.cache, a_pod("j1-0", group="j1", cpu=1, node="n1"))
        raise GONE

    await overdue.round(Client(read_then_shown))

    assert overdue.cache.store.task(overdue.refs[0].uid) is not None


async def test_a_pod_that_cannot_be_read_does_not_block_other_rechecks() -> None:
    overdue = Overdue(3)

    def answer(name: str) -> Pod:
        raise UNREADABLE if name == "j1-0" else GONE

    client = Client(answer)
    await overdue.round(client)
    await overdue.round(client)

    assert client.asked == ["j1-0", "j1-1", "j1-2", "j1-0"]
    assert [entry.task.name for entry in overdue.cache.binds.ledger] == ["j1-0"]


async def test_after_a_timeout_the_recheck_pauses_and_then_begins_with_other_pods() -> None:
    overdue = Overdue(5)

    def answer(name: str) -> Pod:
        raise AWAY

    client = Client(answer)
    await overdue.round(client)
    assert client.asked == ["j1-0", "j1-1", "j1-2"]

    await overdue.round(client, after_s=0.5)  # nothing is late anew
    assert client.asked[3:] == ["j1-3", "j1-4"]
