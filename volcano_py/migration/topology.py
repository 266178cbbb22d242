"""Checks what describes nodes and divides them: HyperNodes, NUMA exporters, NodeShards, colocation, devices."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from volcano_py.admission.contract import UPDATE, Options, Request
from volcano_py.admission.hypernodes import validate
from volcano_py.api.topology import HyperNode
from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, ref_of, sequence, shortened, text
from volcano_py.migration.relatives import NO_OBJECTS
from volcano_py.model.hyper_nodes import HyperNodeTree, hyper_node_record

_SOURCE: Final = "volcano.sh/network-topology-source"
_DEVICE_ANNOTATIONS: Final = ("volcano.sh/node-vgpu-register", "hami.io/node-register-", "hami-vnpu-core")
_DEVICE_RESOURCES: Final = ("volcano.sh/vgpu-number", "volcano.sh/gpu-memory", "volcano.sh/gpu-number")
_SHOWN: Final = 3

Judged = Iterator[tuple[Ref, list[Finding]]]


def judge_hyper_nodes(objects: list[Obj]) -> Judged:
    """Yield HyperNodes whose source does not exist here, and those that contradict each other."""
    found: dict[Ref, list[Finding]] = {ref_of(one, "HyperNode"): [] for one in objects}
    names = {ref.name for ref in found}
    records = []
    for one in objects:
        ref = ref_of(one, "HyperNode")
        found[ref] += _source(ref, one)
        found[ref] += _members(ref, one, names)
        try:
            records.append(hyper_node_record(msgspec.convert(one, HyperNode)))
        except (msgspec.ValidationError, ValueError) as error:
            what = f"our scheduler cannot read it: {shortened(error, 80)}"
            found[ref].append(Finding(Group.DIFFERS, "hypernode-unreadable", ref, what, "correct it"))
    for problem in HyperNodeTree(records).problems:
        ref = Ref("HyperNode", problem.removeprefix("HyperNode ").split()[0])
        said = problem.partition(": ")[0].removeprefix(f"HyperNode {ref.name} ")
        what = f"it {said}: one link is ignored here; in Volcano, no job with a topology is placed"
        found.setdefault(ref, []).append(Finding(Group.DIFFERS, "hypernode-tree", ref, what, "correct the members"))
    yield from found.items()


def _source(ref: Ref, obj: Obj) -> Iterator[Finding]:
    source = text(obj, "metadata", "labels", _SOURCE)
    if source and source != "label":
        what = f"it was found by the source {source}, which does not exist here; it stays as it is"
        advice = "let Volcano's hypernode controller run on, or describe the network with labels of nodes"
        yield Finding(Group.MISSING, "hypernode-source", ref, what, advice)


def _members(ref: Ref, obj: Obj, names: set[str]) -> Iterator[Finding]:
    for flaw in validate(Request(UPDATE, name=ref.name, object=obj, old=obj), NO_OBJECTS, Options()).refusals:
        what = f"our webhook refuses it at its next change: {shortened(flaw.message.rpartition('value: ')[2], 90)}"
        yield Finding(Group.DIFFERS, "hypernode-refused", ref, what, flaw.hint)
    for member in sequence(obj, "spec", "members"):
        name = text(member, "selector", "exactMatch", "name")
        if text(member, "type") == "HyperNode" and name and name not in names:
            what = f"its member {name} does not exist"
            yield Finding(
                Group.DIFFERS, "hypernode-member", ref, what, f"create the HyperNode {name}, or remove the member"
            )


def _together(kind: str, rule: str, what: str, advice: str) -> Callable[[Iterable[Obj]], Judged]:
    """Return a judge that reports all objects of a kind as one: there is one per node, and they mean the same."""

    def judge(objects: Iterable[Obj]) -> Judged:
        names = sorted(ref_of(one, kind).name for one in objects)
        if names:
            ref = Ref(kind, _several(names))
            yield ref, [Finding(Group.MISSING, rule, ref, what, advice)]

    return judge


def _several(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


judge_numatopologies: Final = _together(
    "Numatopology",
    "numa",
    "nothing here reads it: the plugin numa-aware does not exist",
    "keep Volcano's scheduler for pods that need NUMA nodes",
)
judge_shards: Final = _together(
    "NodeShard",
    "node-shard",
    "the controller that writes NodeShards does not exist here; our scheduler reads them",
    "let Volcano's sharding controller run beside ours, or write them by hand",
)


def judge_colocation(objects: list[Obj]) -> Judged:
    """Yield the configurations of colocation, which nothing here carries out."""
    for one in objects:
        ref = ref_of(one, "ColocationConfiguration")
        what = "the controller that writes it on pods does not exist here; pods that have it keep it"
        advice = "let Volcano's colocation-config-controller run beside ours"
        yield ref, [Finding(Group.MISSING, "colocation", ref, what, advice)]


def judge_commands(objects: list[Obj]) -> Judged:
    """Yield the commands that wait: our controllers carry them out as soon as they start."""
    for one in objects:
        ref, target = ref_of(one, "Command"), mapping(one, "target")
        about = f"{text(target, 'kind')} {text(target, 'name')}"
        action = text(one, "action") or "a command without action"
        what = f"{action} for {about} waits; our controllers carry it out at once"
        yield ref, [Finding(Group.DIFFERS, "command", ref, what, "delete it if it shall not be carried out")]


def judge_nodes(nodes: Iterable[Obj]) -> Judged:
    """Yield the nodes that offer shared devices, as one."""
    names = [ref_of(one, "Node").name for one in nodes if _has_devices(one)]
    if names:
        ref = Ref("Node", _several(sorted(names)))
        what = "it offers devices that pods share; the plugin deviceshare does not exist here"
        advice = "keep Volcano's scheduler for pods that share devices"
        yield ref, [Finding(Group.MISSING, "node-devices", ref, what, advice)]


def _has_devices(node: Obj) -> bool:
    annotations = mapping(node, "metadata", "annotations")
    offered = mapping(node, "status", "allocatable")
    return any(key.startswith(_DEVICE_ANNOTATIONS) for key in annotations) or any(
        str(offered.get(key, "0")) not in ("", "0") for key in _DEVICE_RESOURCES
    )
