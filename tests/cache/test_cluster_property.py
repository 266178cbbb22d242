"""Whatever a cache was told, and whatever was assumed meanwhile, it ends as one that was told only how things are."""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cache.nominators import written_by
from tests.snapshot.pictures import check_free_rows, picture
from volcano_py.api.core import Container, Node, Pod, ResourceRequirements
from volcano_py.api.scheduling import PodGroup, PriorityClass
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.evictions import Plan
from volcano_py.model.decisions import Bind, Evict, Nominate
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.testing import a_cluster, a_group, a_node, a_pod, a_priority_class, added, deleted, modified
from volcano_py.testing.objects import EPOCH

PODS = ["p0", "p1", "p2", "theirs"]
NODES = ["n1", "n2"]
GROUPS = ["g1", "g2"]
QUANTITIES = ["1", "1", "500m", "broken"]

Wire = Pod | Node | PodGroup | PriorityClass


class World:
    """A cluster in the plainest form, and the cache that is told of every change of it."""

    def __init__(self) -> None:
        self.cache = a_cluster()
        self.objects: dict[tuple[type, str], Any] = {}
        self.born = 0
        for node, group in zip(NODES, GROUPS, strict=True):
            set_node(self, "p1", node, "g1", "1")
            set_group(self, "p1", node, group, "1")
        for name in PODS[:3]:
            create(self, name, "", "g1", "1")

    def pod(self, name: str) -> Pod | None:
        """Return the present state of a pod."""
        return self.objects.get((Pod, name))

    def put(self, obj: Wire) -> None:
        """Let an object be as it is here."""
        key = (type(obj), obj.metadata.name)
        known = key in self.objects
        self.objects[key] = obj
        (modified if known else added)(self.cache, obj)

    def remove(self, kind: type, name: str) -> None:
        """Let an object vanish."""
        obj = self.objects.pop((kind, name), None)
        if obj is not None:
            deleted(self.cache, obj)

    def told_afresh(self) -> ClusterCache:
        """Return a cache that was told only how things are."""
        return a_cluster(*self.objects.values())


def create(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if world.pod(name) is None:
        world.born += 1
        scheduler = "other" if name == "theirs" else "volcano"
        world.put(a_pod(name, uid=f"{name}-{world.born}", group=group, cpu=cpu, scheduler=scheduler))


def change(world: World, name: str, change_of: Callable[[Pod], dict[str, Any]]) -> None:
    pod = world.pod(name)
    if pod is not None and pod.status.phase not in ("Succeeded", "Failed"):
        world.put(msgspec.structs.replace(pod, **change_of(pod)))


def bind(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None and not pod.spec.node_name:
        change(world, name, lambda pod: {"spec": msgspec.structs.replace(pod.spec, node_name=node)})


def start(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None and pod.spec.node_name:
        change(world, name, lambda pod: {"status": msgspec.structs.replace(pod.status, phase="Running")})


def end(world: World, name: str, node: str, group: str, cpu: str) -> None:
    change(world, name, lambda pod: {"status": msgspec.structs.replace(pod.status, phase="Succeeded")})


def terminate(world: World, name: str, node: str, group: str, cpu: str) -> None:
    change(world, name, lambda pod: {"metadata": msgspec.structs.replace(pod.metadata, deletion_timestamp=EPOCH)})


def ask(world: World, name: str, node: str, group: str, cpu: str) -> None:
    containers = [Container(name="main", resources=ResourceRequirements(requests={"cpu": cpu}))]
    change(world, name, lambda pod: {"spec": msgspec.structs.replace(pod.spec, containers=containers)})


def regroup(world: World, name: str, node: str, group: str, cpu: str) -> None:
    annotations = {"scheduling.k8s.io/group-name": group}
    change(world, name, lambda pod: {"metadata": msgspec.structs.replace(pod.metadata, annotations=annotations)})


def delete(world: World, name: str, node: str, group: str, cpu: str) -> None:
    world.remove(Pod, name)


def assume(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None:
        ref = TaskRef("default", name, pod.metadata.uid)
        job = JobKey("default", pod.metadata.annotations["scheduling.k8s.io/group-name"])
        world.cache.binds.assume((Bind(ref, node, job),), world.cache.token)


def answer(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None:
        ref = TaskRef("default", name, pod.metadata.uid)
        {"n1": world.cache.binds.sent, "n2": world.cache.binds.acknowledged}[node](ref)


def fail(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None:
        world.cache.binds.failed(TaskRef("default", name, pod.metadata.uid), "refused")


def nominate(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None and not pod.spec.node_name:
        chosen = node if cpu == "1" else ""
        change(world, name, lambda pod: {"status": msgspec.structs.replace(pod.status, nominated_node_name=chosen)})
        writer = {"g1": "volcano-py", "g2": "karpenter"}[group]  # a real API server always records it
        world.put(written_by(world.pod(name) or pod, writer))


def decide_nomination(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None:
        world.cache.nominations.assume(Nominate(TaskRef("default", name, pod.metadata.uid), node if cpu == "1" else ""))


def evict(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None:
        job = JobKey("default", pod.metadata.annotations["scheduling.k8s.io/group-name"])
        decision = Evict(TaskRef("default", name, pod.metadata.uid), pod.spec.node_name, job, "preempt", "")
        if not world.cache.evictions.objection(Plan((decision,)), world.cache.token):
            world.cache.evictions.assume((decision,))
            world.cache.evictions.sent(decision.task)


def fail_eviction(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None:
        task = TaskRef("default", name, pod.metadata.uid)
        if node == "n1":
            world.cache.evictions.failed(task, "refused")
        else:
            world.cache.evictions.resolve(task, pod)


def read_again(world: World, name: str, node: str, group: str, cpu: str) -> None:
    if (pod := world.pod(name)) is not None:
        world.cache.binds.resolve(TaskRef("default", name, pod.metadata.uid), pod)


def set_node(world: World, name: str, node: str, group: str, cpu: str) -> None:
    capacity = {"1": 4, "500m": 1, "broken": "broken"}[cpu]
    world.put(a_node(node, cpu=capacity, unschedulable=group == "g2", gpu=1 if name == "p0" else 0))


def remove_node(world: World, name: str, node: str, group: str, cpu: str) -> None:
    world.remove(Node, node)


def set_group(world: World, name: str, node: str, group: str, cpu: str) -> None:
    world.put(a_group(group, min_available=PODS.index(name), priority_class=node, min_resources={"cpu": cpu}))


def remove_group(world: World, name: str, node: str, group: str, cpu: str) -> None:
    world.remove(PodGroup, group)


def set_class(world: World, name: str, node: str, group: str, cpu: str) -> None:
    world.put(a_priority_class(node, PODS.index(name), global_default=group == "g1"))


def remove_class(world: World, name: str, node: str, group: str, cpu: str) -> None:
    world.remove(PriorityClass, node)


POD_STEPS = [create, create, bind, bind, start, end, terminate, ask, ask, regroup, delete]
BIND_STEPS = [assume, assume, assume, answer, fail, read_again]
EVICTION_STEPS = [evict, evict, fail_eviction, nominate, nominate, decide_nomination]
OTHER_STEPS = [set_node, set_node, remove_node, set_group, set_group, remove_group, set_class, remove_class]


@settings(max_examples=80)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*POD_STEPS, *BIND_STEPS, *EVICTION_STEPS, *OTHER_STEPS]),
            st.sampled_from(PODS),
            st.sampled_from(NODES),
            st.sampled_from(GROUPS),
            st.sampled_from(QUANTITIES),
        ),
        min_size=20,
        max_size=50,
    )
)
def test_a_cache_after_any_events_equals_one_built_from_the_final_state(steps: list[Any]) -> None:
    world = World()
    for step, *about in steps:
        step(world, *about)
        world.cache.validate()
    for entry in list(world.cache.binds.ledger):
        world.cache.binds.failed(entry.task, "the end")
    for entry in list(world.cache.evictions.ledger):
        world.cache.evictions.failed(entry.task, "the end")
    world.cache.nominations.end_expired(lambda _: False, float("inf"))
    for name in PODS:
        ask(
            world, name, "", "", "1"
        )  # what was known of a pod that cannot be read is kept: no cache told afresh has it

    afresh = world.told_afresh()

    world.cache.validate()
    assert picture(world.cache.snapshot()) == picture(afresh.snapshot())
    assert world.cache.bound_pods() == afresh.bound_pods()
    assert world.cache.unreadable() == afresh.unreadable()
    check_free_rows(world.cache.snapshot())
