"""Hostile objects of every kind, in the scheduler's cache, in whole cycles and in the webhooks: nothing raises.

Whatever stands beside them is handled. In tests, a fault of ours is not survived (`tests.conftest`), so that these
tests fail over every object that our code can only set aside.
"""

from typing import Any

import msgspec
import pytest

from tests.admission.dict_view import DictView
from tests.faults.hostile import Maker
from volcano_py.admission.contract import CREATE, UPDATE, Options, Request
from volcano_py.admission.reviews import answered
from volcano_py.admission.rules import RULES
from volcano_py.api.batch import CronJob, Job
from volcano_py.api.core import Pod
from volcano_py.api.flow import JobFlow
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.api.topology import HyperNode
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.watched_kinds import WATCHED_KINDS, WatchedKind
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.kube.decoding import LineDecoder, PageDecoder, Undecodable
from volcano_py.kube.delivery import Delivery
from volcano_py.kube.setting_aside import SettingAside
from volcano_py.model.decisions import Bind, Decision
from volcano_py.plugins import PLUGINS
from volcano_py.runtime.clock import FakeClock
from volcano_py.scheduler import Policy, run_cycle
from volcano_py.testing import a_cluster, a_job, a_node, a_policy, added

SEEDS = range(5)
OF_EACH = 20
NOW = 1_796_000_000.0
OTHERS = [name for name in PLUGINS if name not in ("capacity", "proportion", "nodegroup")]
POLICIES = {
    "capacity": a_policy("enqueue, allocate, preempt, reclaim, backfill, shuffle", [*OTHERS, "capacity"]),
    "proportion": a_policy(
        "enqueue, gangpreempt, allocate, gangreclaim, backfill", [*OTHERS, "proportion", "nodegroup"]
    ),
}
PLAIN = a_policy(
    "enqueue, allocate, backfill", ["priority", "gang", "conformance", "predicates", "nodeorder", "binpack"]
)
REVIEWED: dict[str, type] = {
    "jobs": Job,
    "queues": Queue,
    "podgroups": PodGroup,
    "pods": Pod,
    "jobflows": JobFlow,
    "hypernodes": HyperNode,
    "cronjobs": CronJob,
}


def deliver(kind: WatchedKind[Any], cache: ClusterCache, maker: Maker, *, change: str = "ADDED") -> dict[str, bool]:
    """Pass hostile objects from the bytes of a watch to the cache; return by uid whether each fits its type."""
    decoder = LineDecoder(kind.type)
    delivery = Delivery(kind.resource.label, SettingAside(kind.resource.label, kind.handler(cache), FakeClock()))
    fits: dict[str, bool] = {}
    for _ in range(OF_EACH):
        body = maker.of(kind.type, namespaced=kind.resource.namespaced).body
        item: Any = decoder.decode(msgspec.json.encode({"type": change, "object": body}))
        uid = body["metadata"]["uid"]
        fits[uid] = not isinstance(item, Undecodable)
        if fits[uid]:
            delivery.put(item.object, 0.0)
        else:
            delivery.refuse(item, 0.0)
    delivery.flush()
    return fits


def cycles(cache: ClusterCache, policy: Policy, seed: int) -> list[Decision]:
    """Run two cycles; no plugin may fail."""
    memory, decisions = Memory(), list[Decision]()
    for number in range(2):
        clock = CycleClock(NOW + number)
        memory, report = run_cycle(cache.snapshot(), policy, clock, seed, memory, decisions.extend)
        assert not report.failures
    return decisions


@pytest.mark.parametrize("seed", SEEDS)
def test_hostile_objects_of_all_kinds_in_the_cache_and_in_whole_cycles(seed: int) -> None:
    maker = Maker(seed)
    cache = a_cluster(a_node("n1"), a_node("n2"), a_job("good", tasks=2, cpu="1"))
    fits = {kind.resource.kind: deliver(kind, cache, maker) for kind in WATCHED_KINDS}

    cache.validate()
    told = {entry.uid for entry in cache.unreadable()}
    fits.pop("Pod")  # those of other schedulers that are on no node do not matter
    assert {uid for of_kind in fits.values() for uid, fit in of_kind.items() if not fit} <= told
    assert {"n1", "n2"} <= set(cache.store.nodes.names())
    for policy in POLICIES.values():
        cycles(cache, policy, seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", WATCHED_KINDS, ids=lambda kind: kind.resource.kind)
def test_a_job_is_placed_beside_hostile_objects_of_one_kind(kind: WatchedKind[Any], seed: int) -> None:
    cache = a_cluster(*(a_node(name, labels={"good": "yes"}) for name in ("clean-1", "clean-2")))
    deliver(kind, cache, Maker(seed))
    good = a_job("good", tasks=2, priority=2**31 - 1, cpu="1", spec={"nodeSelector": {"good": "yes"}})
    added(cache, good)

    bound = {decision.task.name for decision in cycles(cache, PLAIN, seed) if isinstance(decision, Bind)}

    assert {"good-0", "good-1"} <= bound


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", REVIEWED)
def test_webhooks_answer_reviews_of_hostile_objects(kind: str, seed: int) -> None:
    maker = Maker(seed)
    queues = [maker.of(Queue, namespaced=False).body for _ in range(5)]
    for queue in queues:
        for section in ("spec", "status"):
            queue[section] = queue[section] if isinstance(queue.get(section), dict) else {}
    for path, rule in RULES.items():
        if path.split("/")[1] != kind:
            continue
        for _ in range(10):
            new, old = maker.of(REVIEWED[kind]).body, maker.of(REVIEWED[kind]).body
            for request in (
                Request(CREATE, "default", new["metadata"]["name"], new),
                Request(UPDATE, "default", new["metadata"]["name"], new, old),
            ):
                verdict = rule(request, DictView(queues), Options())
                assert msgspec.json.decode(answered("u", verdict))["response"]["uid"] == "u"


def test_a_list_of_hostile_objects_loses_none() -> None:
    for kind in WATCHED_KINDS:
        maker = Maker(7)
        bodies = [maker.of(kind.type).body for _ in range(50)]
        page = PageDecoder(kind.type).decode(
            msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": bodies}), "/path"
        )
        assert len(page.items) + len(page.undecodable) == 50


def test_the_same_seed_makes_the_same_objects() -> None:
    assert Maker(3).of(Pod) == Maker(3).of(Pod) != Maker(4).of(Pod)


def test_hostile_objects_are_hostile() -> None:
    """Some objects fit their type and some do not, most can be read and some cannot: else these tests say little."""
    for kind in WATCHED_KINDS:
        maker, cache = Maker(11), a_cluster()
        fits = [fit for _ in range(10) for fit in deliver(kind, cache, maker).values()]
        assert 0.5 < sum(fits) / len(fits) < 1, kind
        assert any(entry.kind == kind.resource.kind for entry in cache.unreadable())
