"""The preparer against an API server with a volume controller and a provisioner that can refuse."""

import asyncio
import random

import pytest

from tests.effects.objects import JOB, put_pod
from tests.effects.storage import (
    CLAIMS,
    DYNAMIC,
    VOLUMES,
    LaggingWatch,
    VolumeControllers,
    a_volume,
    claim,
    is_bound,
    promised,
    put_claim,
    put_classes,
    put_volume,
)
from tests.effects.test_binder import Outcomes
from tests.effects.waiting import until
from volcano_py.api.storage import SELECTED_NODE
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.effects.preparer import Preparer, PreparerOptions
from volcano_py.effects.promising import Promising
from volcano_py.metrics.preparing import PrepareMetrics
from volcano_py.model.decisions import Bind, BindClaim, PrepareStep, ProvisionClaim
from volcano_py.runtime.clock import Clock, FakeClock, RealClock

QUICK = PreparerOptions(retry_first_s=0.01, retry_cap_s=0.02, timeout_s=10.0, attempts=4, wait_s=5.0)


class World:
    """A preparer, and everything that it talks to."""

    def __init__(self, server, client, supervisor, registry, rng):
        self.server = server
        put_classes(server)
        self.controllers = VolumeControllers(server, rng)
        self.watch = LaggingWatch(server, rng)
        self.outcomes = Outcomes()
        self.sent: list[Bind] = []
        self.backpressure = BindBackpressure()
        self.objections: dict[str, str] = {}  # by name of a pod
        self._client, self._supervisor, self._rng = client, supervisor, rng
        self._metrics = PrepareMetrics(registry)
        self.registry = registry
        self.clock: Clock = RealClock()
        self._preparer: Preparer | None = None

    def preparer(self, options: PreparerOptions = QUICK) -> Preparer:
        if self._preparer is not None:
            return self._preparer
        self._preparer = made = Preparer(
            Promising(self._client, self.watch, owner="volcano", timeout_s=options.timeout_s),
            self.sent.extend,
            self.outcomes,
            self.backpressure,
            self._metrics,
            clock=self.clock,
            rng=self._rng,
            objection=lambda bind: self.objections.get(bind.task.name, ""),
            options=options,
        )
        self.watch.on_change(made.changed)
        made.start(self._supervisor)
        return made

    async def carried_out(self, *binds: Bind, options: PreparerOptions = QUICK) -> Preparer:
        preparer = self.preparer(options)
        assert self.backpressure.enter(len(binds))
        await self.submit(preparer, *binds)
        await until(lambda: not preparer.busy)
        return preparer

    async def submit(self, preparer: Preparer, *binds: Bind) -> None:
        """Submit binds that were decided on what the watch shows."""
        await until(lambda: self.watch.up_to_date)
        preparer.submit(binds)

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def world(server: ApiServer, client, supervisor, registry) -> World:
    return World(server, client, supervisor, registry, random.Random(1))


def static(server: ApiServer, number: int, node: str = "n1") -> Bind:
    """Return the bind of a new pod whose new claim is to be bound to a new volume."""
    uid = put_claim(server, f"c{number}")
    put_volume(server, f"v{number}", node)
    return Bind(put_pod(server, f"p{number}"), node, JOB, (BindClaim("default", f"c{number}", uid, f"v{number}"),))


def dynamic(server: ApiServer, number: int, node: str = "n1") -> Bind:
    """Return the bind of a new pod for whose new claim a volume is to be made."""
    uid = put_claim(server, f"c{number}", DYNAMIC)
    return Bind(put_pod(server, f"p{number}"), node, JOB, (ProvisionClaim("default", f"c{number}", uid, node),))


def unsteady(server: ApiServer, number: int) -> Bind:
    return Bind(put_pod(server, f"p{number}"), "n1", JOB)


async def test_binds_without_steps_are_passed_on_at_once(world: World):
    binds = [unsteady(world.server, number) for number in range(3)]
    preparer = world.preparer()

    preparer.submit(binds)

    assert world.sent == binds
    assert not preparer.busy
    assert world.outcomes.prepared_in == []


async def test_a_claim_is_bound_to_its_volume_before_the_bind_is_sent(world: World):
    bind = static(world.server, 0)
    await until(lambda: "v0" in world.watch.volumes and world.watch.volumes["v0"].phase == "Available")

    await world.carried_out(bind)

    assert world.sent == [bind]
    assert is_bound(world.server, "c0")
    volume = world.server.get(VOLUMES, "v0")
    assert volume is not None
    assert volume["spec"]["claimRef"]["uid"] == bind.prepare[0].claim_uid
    assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert promised(world.server) == []
    assert world.backpressure.count == 1
    assert world.server.requests.count("get", CLAIMS) == 0, "what the watch shows is trusted"


async def test_a_volume_is_made_for_the_node(world: World):
    bind = dynamic(world.server, 0, "n7")

    await world.carried_out(bind)

    assert world.sent == [bind]
    found = claim(world.server, "c0")
    assert found is not None
    assert found["metadata"]["annotations"][SELECTED_NODE] == "n7"
    assert world.watch.reaches(found["spec"]["volumeName"], "n7")


async def test_a_gang_is_sent_in_the_order_it_was_decided_when_all_are_prepared(world: World):
    gang = [static(world.server, 0), unsteady(world.server, 1), dynamic(world.server, 2)]
    gate = [False]
    world.controllers.provisions = lambda _: gate[0]
    preparer = world.preparer()
    await world.submit(preparer, *gang)
    await until(lambda: is_bound(world.server, "c0"))
    assert world.sent == []

    gate[0] = True
    world.controllers.look_again()

    await until(lambda: not preparer.busy)
    assert world.sent == gang
    assert [bind for bind, _ in world.outcomes.prepared_in] == gang
    assert len({seconds for _, seconds in world.outcomes.prepared_in}) == 1, "they wait for each other"


async def test_a_refusal_of_the_provisioner_undoes_the_gang_and_says_why(world: World):
    gang = [dynamic(world.server, number) for number in range(3)]
    world.controllers.provisions = lambda one: one["metadata"]["name"] == "c1"
    world.controllers.refuses = lambda one, node: True

    await world.carried_out(*gang)

    assert world.sent == []
    assert promised(world.server) == []
    ((failed, why),) = world.outcomes.failed
    assert failed == gang[1]
    assert "default/c1" in why
    assert "n1" in why
    assert "refused" in why
    assert {bind.task.name for bind, _ in world.outcomes.withdrawn} == {"p0", "p2"}
    (outcome,) = world.outcomes.gangs
    assert (outcome.binds, outcome.unsent) == (3, 3)
    assert world.metric("volcano_py_prepare_steps_total", step="ProvisionClaim", result="refused") == 1
    assert world.metric("volcano_py_promises_undone_total", result="undone") == 2


async def test_a_gang_is_reported_as_a_whole_when_all_of_it_is_undone(world: World):
    gang = [static(world.server, 0), dynamic(world.server, 1)]
    world.controllers.paused = True
    preparer = world.preparer()
    await world.submit(preparer, *gang)
    await until(lambda: len(promised(world.server)) == 2)
    fault = world.server.faults.add(Fault("reply", verb="patch", resource=VOLUMES, code=503, times=2))

    world.objections["p1"] = "pod default/p1 is gone"

    await until(lambda: not preparer.busy)
    assert fault.hits == 2
    assert promised(world.server) == []
    assert [bind.task.name for bind, _ in world.outcomes.withdrawn] == ["p0", "p1"]
    assert world.outcomes.failed == []


async def test_a_claim_that_is_not_bound_in_time_is_taken_back(world: World):
    bind = dynamic(world.server, 0)
    world.controllers.provisions = lambda _: False

    world.clock = clock = FakeClock()
    preparer = world.preparer(PreparerOptions(wait_s=5.0, announce_s=1.5))
    assert world.backpressure.enter(1)

    await world.submit(preparer, bind)
    await until(lambda: promised(world.server))
    for _ in range(70):
        await asyncio.sleep(0.005)
        clock.advance(0.1)
    await until(lambda: not preparer.busy)

    assert world.sent == []
    assert "got no volume for node n1 within 5 s" in world.outcomes.failed[0][1]
    assert promised(world.server) == []
    said = "the provisioner of claim default/c0 has not made a volume for node n1 yet"
    assert world.outcomes.preparing_long == [(bind, said)]


async def test_a_volume_that_the_node_cannot_reach_is_no_success(world: World):
    bind = dynamic(world.server, 0, "n1")
    ref = {"namespace": "default", "name": "c0", "uid": bind.prepare[0].claim_uid}
    world.controllers.provisions = lambda _: False
    preparer = world.preparer()
    await world.submit(preparer, bind)
    await until(lambda: promised(world.server))

    world.server.create(a_volume("other", "n2", DYNAMIC, claimRef=ref))

    await until(lambda: not preparer.busy)
    assert "node n1 cannot reach volume other" in world.outcomes.failed[0][1]
    assert is_bound(world.server, "c0")


async def test_a_volume_that_is_promised_to_another_claim_stays_there(world: World):
    bind = static(world.server, 0)
    uid = put_claim(world.server, "other")
    other = Bind(put_pod(world.server, "q"), "n1", JOB, (BindClaim("default", "other", uid, "v0"),))

    await world.carried_out(bind)
    world.sent.clear()
    await world.carried_out(other)

    assert world.sent == []
    assert "volume v0 for claim default/other is promised to claim default/c0" in world.outcomes.failed[0][1]
    assert is_bound(world.server, "c0")
    assert promised(world.server) == []


async def test_a_volume_that_a_user_has_reserved_stays_reserved_after_an_undo(world: World):
    bind = static(world.server, 0)
    ref = {"namespace": "default", "name": "c9"}
    put_volume(world.server, "mine", claimRef=ref)
    uid = put_claim(world.server, "c9")
    world.controllers.paused = True
    steps: tuple[PrepareStep, ...] = (BindClaim("default", "c9", uid, "mine"), *bind.prepare)
    preparer = world.preparer(PreparerOptions(wait_s=0.3))
    await world.submit(preparer, Bind(bind.task, "n1", JOB, steps))
    await until(lambda: len(promised(world.server)) == 2)

    await until(lambda: not preparer.busy)

    volume = world.server.get(VOLUMES, "mine")
    assert volume is not None
    left = volume["spec"]["claimRef"]
    assert (left["namespace"], left["name"], left.get("uid")) == ("default", "c9", None)
    assert promised(world.server) == []


async def test_a_step_that_two_pods_share_is_undone_with_the_last_of_them(world: World):
    first = dynamic(world.server, 0)
    second = Bind(put_pod(world.server, "other"), "n1", JOB, first.prepare)
    world.controllers.provisions = lambda _: False
    preparer = world.preparer()
    await world.submit(preparer, first)
    await world.submit(preparer, second)
    await until(lambda: promised(world.server))

    world.objections["p0"] = "pod default/p0 is gone"
    await until(lambda: world.outcomes.withdrawn)
    assert promised(world.server) == ["claim c0 waits for a volume"]

    world.objections["other"] = "pod default/other is gone"
    await until(lambda: not preparer.busy)
    assert promised(world.server) == []


async def test_pods_that_share_a_claim_are_sent_together(world: World):
    first = dynamic(world.server, 0)
    second = Bind(put_pod(world.server, "other"), "n1", JOB, first.prepare)

    await world.carried_out(first, second)

    assert world.sent == [first, second]


async def test_a_claim_of_the_same_name_is_not_taken_for_the_old_one(world: World):
    bind = dynamic(world.server, 0)
    resource = world.server.resources.named(CLAIMS)
    world.server.registry.delete(resource, "default", "c0")
    put_claim(world.server, "c0", DYNAMIC)

    await world.carried_out(bind)

    assert "replaced by another of its name" in world.outcomes.failed[0][1]
    assert promised(world.server) == []


async def test_a_refusal_by_rbac_is_final(world: World):
    bind = static(world.server, 0)
    fault = world.server.faults.add(Fault("reply", verb="patch", resource=VOLUMES, code=403, times=1))

    await world.carried_out(bind)

    assert fault.hits == 1
    assert "preparing claim default/c0" in world.outcomes.failed[0][1]
    assert promised(world.server) == []


async def test_what_cannot_be_undone_is_reported_and_left_to_the_recovery(world: World):
    bind = dynamic(world.server, 0)
    world.controllers.provisions = lambda _: False
    preparer = world.preparer()
    await world.submit(preparer, bind)
    await until(lambda: promised(world.server))
    fault = world.server.faults.add(Fault("reply", verb="patch", resource=CLAIMS, code=503))

    world.objections["p0"] = "node n1 is gone"
    await until(lambda: not preparer.busy)

    assert world.metric("volcano_py_promises_undone_total", result="given_up") == 1
    assert world.outcomes.withdrawn == [(bind, "node n1 is gone")]
    assert promised(world.server) == ["claim c0 waits for a volume"]

    world.server.faults.remove(fault)
    preparer.undo_orphans(bind.prepare)
    assert await preparer.undone(5)
    assert promised(world.server) == []
    assert world.metric("volcano_py_promises_recovered_total") == 1


async def test_the_end_undoes_what_does_not_complete_in_time(world: World):
    gang = [static(world.server, 0), dynamic(world.server, 1)]
    world.controllers.provisions = lambda _: False
    preparer = world.preparer()
    await world.submit(preparer, *gang)
    await until(lambda: is_bound(world.server, "c0"))

    assert await preparer.drained(2.0)

    assert promised(world.server) == []
    assert is_bound(world.server, "c0")
    assert world.outcomes.failed == []
    assert world.outcomes.gangs == []


async def test_binds_that_are_prepared_hold_nothing_up(world: World):
    bind = dynamic(world.server, 0)
    world.controllers.provisions = lambda _: False
    preparer = world.preparer()
    assert world.backpressure.enter(1)
    assert world.backpressure.under_way()

    await world.submit(preparer, bind)

    assert not world.backpressure.under_way()
    assert preparer.under_way == 1
    world.objections["p0"] = "gone"
    await until(lambda: not preparer.busy)
    assert world.backpressure.count == 1, "whoever hears of the end takes it from the count"


LOST = [
    pytest.param({"action": "drop_after", "times": 1}, id="one-lost-answer"),
    pytest.param({"action": "drop_after"}, id="every-answer-lost"),
    pytest.param({"action": "drop_before", "times": 1}, id="a-broken-connection"),
    pytest.param({"action": "reply", "code": 500, "times": 1}, id="an-error-of-the-server"),
]


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("kind", [static, dynamic])
async def test_a_step_of_unknown_outcome_is_undone_too(world: World, kind, fault):
    bind = kind(world.server, 0)
    world.controllers.paused = True
    rule = world.server.faults.add(Fault(verb="patch", resource="persistentvolume*", **fault))
    preparer = world.preparer()
    await world.submit(preparer, bind)
    await until(lambda: rule.hits)
    await until(lambda: promised(world.server) or not preparer.busy)
    world.objections["p0"] = "pod default/p0 is gone"
    await until(lambda: preparer._undos.backlog or not preparer.busy)

    world.server.faults.clear()

    await until(lambda: not preparer.busy)
    preparer.undo_orphans(bind.prepare if "times" not in fault else ())  # given up meanwhile
    assert await preparer.undone(5)
    assert promised(world.server) == []


async def test_a_volume_that_somebody_else_takes_meanwhile_is_not_taken_away(world: World):
    bind = static(world.server, 0)
    other = {"namespace": "default", "name": "other", "uid": "1"}
    world.controllers.paused = True
    world.server.faults.add(Fault("delay", verb="patch", resource=VOLUMES, delay_s=0.3, times=1))
    preparer = world.preparer()
    await world.submit(preparer, bind)
    await until(lambda: preparer._written)

    change(world.server, VOLUMES, "v0", claimRef=other)

    await until(lambda: not preparer.busy)
    volume = world.server.get(VOLUMES, "v0")
    assert volume is not None
    assert volume["spec"]["claimRef"] == other
    assert "volume v0 for claim default/c0 is promised to claim default/other" in world.outcomes.failed[0][1]


async def test_a_claim_that_another_scheduler_takes_meanwhile_is_not_taken_away(world: World):
    bind = dynamic(world.server, 0)
    world.controllers.paused = True
    world.server.faults.add(Fault("delay", verb="patch", resource=CLAIMS, delay_s=0.3, times=1))
    preparer = world.preparer()
    await world.submit(preparer, bind)
    await until(lambda: preparer._written)

    annotate(world.server, "c0", {SELECTED_NODE: "n9"})

    await until(lambda: not preparer.busy)
    found = claim(world.server, "c0")
    assert found is not None
    assert found["metadata"]["annotations"] == {SELECTED_NODE: "n9"}
    assert "waits for a volume for node n9 already" in world.outcomes.failed[0][1]


async def test_a_volume_that_is_being_bound_is_not_taken_back(world: World):
    bind = static(world.server, 0)
    world.controllers.paused = True
    preparer = world.preparer(PreparerOptions(retry_first_s=0.2, attempts=8))
    await world.submit(preparer, bind)
    await until(lambda: promised(world.server))
    volume = world.server.get(VOLUMES, "v0")
    assert volume is not None
    world.server.registry.inject(
        {**volume, "apiVersion": "v1", "kind": "PersistentVolume", "status": {"phase": "Bound"}}
    )
    before = world.server.requests.count("get", VOLUMES)
    world.objections["p0"] = "pod default/p0 is gone"
    await until(lambda: world.server.requests.count("get", VOLUMES) > before)

    world.controllers.paused = False
    world.controllers.look_again()

    await until(lambda: not preparer.busy)
    assert is_bound(world.server, "c0")
    assert promised(world.server) == []


def change(server: ApiServer, plural: str, name: str, **spec) -> None:
    resource = server.resources.named(plural)
    server.registry.patch(resource, None, name, lambda obj: {**obj, "spec": {**obj["spec"], **spec}})


def annotate(server: ApiServer, name: str, annotations: dict[str, str]) -> None:
    def changed(obj):
        return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}

    server.registry.patch(server.resources.named(CLAIMS), "default", name, changed)
