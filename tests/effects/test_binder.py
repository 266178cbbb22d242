"""The binder against an API server that loses answers, pushes back and says no."""

import random

import pytest

from tests.controlplane.ports import free_port
from tests.effects.objects import JOB, binds, node_of, put_node, put_pod
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, ApiServerOptions, Fault
from volcano_py.effects.binder import Binder, BinderOptions
from volcano_py.effects.outcomes import GangOutcome
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.clock import RealClock
from volcano_py.runtime.supervisor import Supervisor

QUICK = BinderOptions(retry_first_s=0.01, retry_cap_s=0.02, timeout_s=10.0, attempts=4)


class Outcomes:
    def __init__(self):
        self.preparing_long: list[tuple[Bind, str]] = []
        self.prepared_in: list[tuple[Bind, float]] = []
        self.sent: list[Bind] = []
        self.there: list[Bind] = []
        self.failed: list[tuple[Bind, str]] = []
        self.unknown: list[Bind] = []
        self.withdrawn: list[tuple[Bind, str]] = []
        self.gangs: list[GangOutcome] = []

    def preparing(self, bind, missing):
        self.preparing_long.append((bind, missing))

    def prepared(self, bind, seconds):
        self.prepared_in.append((bind, seconds))

    def sending(self, bind):
        self.sent.append(bind)

    def bound(self, bind):
        self.there.append(bind)

    def bind_failed(self, bind, why):
        self.failed.append((bind, why))

    def bind_withdrawn(self, bind, why):
        self.withdrawn.append((bind, why))

    def bind_unknown(self, bind):
        self.unknown.append(bind)

    def gang_failed(self, outcome):
        self.gangs.append(outcome)


@pytest.fixture
def outcomes() -> Outcomes:
    return Outcomes()


@pytest.fixture
def a_binder(client, supervisor, outcomes, bind_metrics, rng):
    def make(options: BinderOptions = QUICK, **more) -> Binder:
        binder = Binder(client, outcomes, bind_metrics, clock=RealClock(), rng=rng, options=options, **more)
        binder.start(supervisor)
        return binder

    return make


async def carried_out(binder: Binder, submitted: list[Bind]) -> None:
    binder.submit(submitted)
    assert await binder.drained(20)


def successes(server: ApiServer) -> int:
    return server.requests.count("create", "pods/binding", 201)


async def test_every_pod_of_a_gang_is_bound_once(server: ApiServer, a_binder, outcomes):
    gang = binds(server, 100)

    await carried_out(a_binder(), gang)

    assert {node_of(server, f"p{number}") for number in range(100)} == {"n1"}
    assert set(outcomes.there) == set(gang)
    assert successes(server) == server.requests.count("create", "pods/binding") == 100
    assert outcomes.gangs == []


async def test_binds_are_sent_in_the_order_they_were_decided(server: ApiServer, a_binder, outcomes):
    gang = binds(server, 20)

    await carried_out(a_binder(BinderOptions(start=1, highest=1)), gang)

    assert outcomes.sent == gang


async def test_a_bind_that_became_obsolete_in_the_queue_is_not_sent(server: ApiServer, a_binder, outcomes):
    gone = []
    server.faults.add(Fault("reply", verb="create", resource="pods/binding", name="p0", code=429, times=1))
    binder = a_binder(objection=lambda bind: f"node {bind.node} is gone" if bind.task.name in gone else "")
    gang = binds(server, 2)
    binder.submit(gang)
    await until(lambda: server.requests.count("create", "pods/binding", 429))

    gone.append("p0")

    assert await binder.drained(20)
    assert outcomes.there == [gang[1]]
    assert outcomes.withdrawn == [(gang[0], "node n1 is gone")]
    assert outcomes.failed == []
    assert outcomes.gangs == []  # nothing has failed
    assert successes(server) == 1
    assert not binder.holds(gang[0].task.uid)


async def test_a_bind_with_unknown_outcome_is_looked_up_before_it_is_undone(server: ApiServer, a_binder, outcomes):
    server.faults.add(Fault("drop_after", verb="create", resource="pods/binding", times=1))
    asked = []

    def objection(bind: Bind) -> str:
        asked.append(bind)
        return "node n1 is gone" if len(asked) > 1 else ""

    gang = binds(server, 1)

    await carried_out(a_binder(objection=objection), gang)

    assert (outcomes.there, outcomes.withdrawn) == (gang, [])


async def test_an_answer_that_is_not_from_the_api_server_does_not_count_as_bound(
    server: ApiServer, client: ApiClient, a_binder, outcomes, monkeypatch
):
    post = client.post_bytes
    answers = [b"<html>please log in</html>"]

    async def in_the_way(path: str, body: bytes, **options) -> bytes:
        return answers.pop() if answers else await post(path, body, **options)

    monkeypatch.setattr(client, "post_bytes", in_the_way)
    gang = binds(server, 1)

    await carried_out(a_binder(), gang)

    assert node_of(server, "p0") == "n1"
    assert outcomes.there == gang


async def test_a_lost_answer_makes_no_second_binding(server: ApiServer, a_binder, outcomes):
    fault = server.faults.add(Fault("drop_after", verb="create", resource="pods/binding", probability=0.5))
    gang = binds(server, 40)

    await carried_out(a_binder(), gang)

    assert fault.hits > 5
    assert set(outcomes.there) == set(gang)
    assert server.requests.count("create", "pods/binding", 409) == 0  # nothing was sent twice after it took effect


async def test_a_request_that_never_arrived_is_sent_again(server: ApiServer, a_binder, outcomes):
    server.faults.add(Fault("drop_before", verb="create", resource="pods/binding", times=10))
    gang = binds(server, 10)

    await carried_out(a_binder(), gang)

    assert set(outcomes.there) == set(gang)
    assert successes(server) == 10


async def test_an_answer_that_takes_too_long_makes_no_second_binding(server: ApiServer, a_binder, outcomes):
    server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=0.3, times=1))
    gang = binds(server, 1)

    await carried_out(a_binder(BinderOptions(timeout_s=0.1, retry_first_s=0.5, retry_cap_s=0.5)), gang)

    assert outcomes.there == gang
    assert server.requests.count("create", "pods/binding", 409) == 0


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_a_pushed_back_bind_is_retried(server: ApiServer, a_binder, outcomes, code):
    fault = Fault("reply", verb="create", resource="pods/binding", code=code, times=5, retry_after_s=0)
    server.faults.add(fault)
    gang = binds(server, 5)

    await carried_out(a_binder(), gang)

    assert set(outcomes.there) == set(gang)
    assert fault.hits == 5


async def test_429_lowers_the_number_of_requests_in_flight(server: ApiServer, a_binder):
    server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=429, times=40, retry_after_s=0))
    binder = a_binder(BinderOptions(retry_first_s=0.01, retry_cap_s=0.02))
    before = binder.limit

    binder.submit(binds(server, 40))
    await until(lambda: binder.limit <= before / 2)

    assert await binder.drained(20)
    assert successes(server) == 40


async def test_a_pod_that_is_gone_fails_at_once(server: ApiServer, a_binder, outcomes):
    ghost = Bind(TaskRef("default", "ghost", "uid-ghost"), "n1", JOB)

    await carried_out(a_binder(), [ghost])

    assert [bind for bind, _ in outcomes.failed] == [ghost]
    assert server.requests.count("create", "pods/binding") == 1


async def test_a_recreated_pod_of_the_same_name_is_not_bound(server: ApiServer, a_binder, outcomes):
    put_pod(server, "p0")
    old = Bind(TaskRef("default", "p0", "uid-of-the-old-one"), "n1", JOB)

    await carried_out(a_binder(), [old])

    assert "replaced by another" in outcomes.failed[0][1]
    assert node_of(server, "p0") == ""


async def test_a_conflict_because_our_own_lost_bind_took_effect_counts_as_bound(server: ApiServer, a_binder, outcomes):
    gang = binds(server, 1)
    binder = a_binder()
    await carried_out(binder, gang)

    await carried_out(binder, gang)

    assert outcomes.there == gang * 2
    assert outcomes.failed == []


async def test_a_pod_on_another_node_fails_and_says_where(server: ApiServer, a_binder, outcomes):
    gang = binds(server, 1)
    binder = a_binder()
    await carried_out(binder, gang)

    await carried_out(binder, [Bind(gang[0].task, "n2", JOB)])

    assert outcomes.failed == [(Bind(gang[0].task, "n2", JOB), "the pod is on node n1")]
    assert node_of(server, "p0") == "n1"


async def test_a_conflict_over_a_free_pod_is_not_retried(server: ApiServer, a_binder, outcomes):
    fault = server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=409, message="no"))
    gang = binds(server, 1)

    await carried_out(a_binder(), gang)

    assert outcomes.failed == [(gang[0], "no")]
    assert fault.hits == 1


async def test_a_refusal_for_good_is_not_retried_and_the_rest_of_the_gang_goes_on(
    server: ApiServer, a_binder, outcomes
):
    server.faults.add(Fault("reply", verb="create", resource="pods/binding", name="p1", code=403, message="forbidden"))
    gang = binds(server, 3)

    await carried_out(a_binder(), gang)

    assert set(outcomes.there) == {gang[0], gang[2]}
    (outcome,) = outcomes.gangs
    assert (outcome.job, outcome.binds, [bind for bind, _ in outcome.failed]) == (JOB, 3, [gang[1]])


async def test_attempts_end_if_the_server_never_accepts_the_bind(server: ApiServer, a_binder, outcomes):
    fault = server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=429, retry_after_s=0))
    gang = binds(server, 1)

    await carried_out(a_binder(), gang)

    assert fault.hits == QUICK.attempts
    assert "no success after 4 attempts" in outcomes.failed[0][1]


async def test_a_bind_whose_outcome_cannot_be_read_is_unknown_and_not_failed(server: ApiServer, a_binder, outcomes):
    server.faults.add(Fault("drop_after", verb="create", resource="pods/binding"))
    server.faults.add(Fault("reply", verb="get", resource="pods", code=503))
    gang = binds(server, 1)

    await carried_out(a_binder(), gang)

    assert outcomes.unknown == gang
    assert outcomes.failed == []
    assert node_of(server, "p0") == "n1"


async def test_one_slow_retry_does_not_hold_back_other_pods(server: ApiServer, a_binder, outcomes):
    server.faults.add(Fault("reply", verb="create", resource="pods/binding", name="p0", code=429, retry_after_s=60))
    gang = binds(server, 30)
    binder = a_binder(BinderOptions(start=1, highest=1))

    binder.submit(gang)
    await until(lambda: len(outcomes.there) == 29)

    assert binder.holds(gang[0].task.uid)
    assert not binder.holds(gang[1].task.uid)


async def test_gangs_of_one_batch_are_reported_apart(server: ApiServer, a_binder, outcomes):
    ghost = Bind(TaskRef("default", "ghost", "u"), "n1", JobKey("default", "other"))

    await carried_out(a_binder(), [*binds(server, 2), ghost])

    assert [(outcome.job.name, outcome.binds) for outcome in outcomes.gangs] == [("other", 1)]


async def test_binds_survive_a_short_outage(outcomes, bind_metrics, rng: random.Random):
    server = ApiServer(ApiServerOptions(port=free_port()))
    gang = binds(server, 5)
    options = BinderOptions(retry_first_s=0.05, retry_cap_s=0.1)
    address = Credentials(f"http://127.0.0.1:{server.options.port}")
    async with ApiClient(address) as client, Supervisor() as supervisor:
        binder = Binder(client, outcomes, bind_metrics, clock=RealClock(), rng=rng, options=options)
        binder.start(supervisor)
        binder.submit(gang)
        await until(lambda: binder.queued == 5)
        async with server:
            assert await binder.drained(10)

    assert set(outcomes.there) == set(gang)


async def test_metrics_count_binds_in_flight(server: ApiServer, a_binder, registry):
    put_node(server, "n1")
    binder = a_binder()
    binder.submit(binds(server, 50))

    assert registry.get_sample_value("volcano_py_binds_queued") == 50
    assert registry.get_sample_value("volcano_py_bind_limit") == 64
    assert await binder.drained(10)
    assert registry.get_sample_value("volcano_py_binds_total", {"result": "bound"}) == 50
    assert registry.get_sample_value("volcano_scheduling_stage_duration_milliseconds_count", {"stage": "Bind"}) == 50
