"""Pods: what the configuration gives their group, the gate of their queue, and how many may be disrupted."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from volcano_py.admission.contract import (
    ALLOWED,
    CREATE,
    Joining,
    Obj,
    Options,
    Refusal,
    Request,
    ResourceGroup,
    Verdict,
    View,
)
from volcano_py.admission.reading import (
    annotations_of,
    entries,
    part,
    parts,
    quoted,
    text,
    texts,
    words,
    wrong_operation,
)
from volcano_py.api import keys
from volcano_py.conf.plain import read_plain
from volcano_py.conf.schema import ConfError

_BUDGETS: Final = (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE)
_NUMBER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_DIGITS: Final = 18  # of a number that fits in 64 bits, whatever its digits
_HINT: Final = "write a number such as 2, or a percentage such as 30%"


def mutate(request: Request, view: View, options: Options) -> Verdict:
    """Give a pod the gate of its queue if it asks for it, and what its resource group sets."""
    if request.operation != CREATE:
        return wrong_operation("'CREATE' ")
    pod = request.object
    if not isinstance(pod.get("spec", {}), Mapping):
        return ALLOWED  # no pod could be made of it
    namespace = text(pod, "metadata", "namespace") or request.namespace
    group = next((one for one in options.resource_groups if _belongs(pod, namespace, one)), ResourceGroup())
    patch: list[Obj] = []
    if options.queue_gate and _asks_for_gate(pod, group, options):
        gates = [*entries(pod, "spec", "schedulingGates"), {"name": keys.QUEUE_GATE}]
        patch.append({"op": "add", "path": "/spec/schedulingGates", "value": gates})
    warnings: list[str] = []
    if group.labels:
        selector = {**part(pod, "spec", "nodeSelector"), **group.labels}
        patch.append({"op": "add", "path": "/spec/nodeSelector", "value": selector})
    if group.affinity and not part(pod, "spec", "affinity"):
        affinity = _affinity(group)
        if affinity is None:
            warnings.append(f"the affinity of resource group {group.name} is not a JSON object and was left out")
        else:
            patch.append({"op": "add", "path": "/spec/affinity", "value": affinity})
    if group.tolerations:
        tolerations = [*entries(pod, "spec", "tolerations"), *group.tolerations]
        patch.append({"op": "add", "path": "/spec/tolerations", "value": tolerations})
    if group.scheduler_name:
        patch.append({"op": "add", "path": "/spec/schedulerName", "value": group.scheduler_name})
    return Verdict(patch=tuple(patch), warnings=tuple(warnings))


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a pod of ours whose disruption budget cannot be understood."""
    if request.operation != CREATE:
        return wrong_operation("'CREATE'")
    if text(request.object, "spec", "schedulerName") not in options.scheduler_names:
        return ALLOWED
    annotations = annotations_of(request.object)
    given = [key for key in _BUDGETS if key in annotations]
    refusals = [refusal for key in given for refusal in _budget(key, annotations[key])]
    if len(given) > 1:
        sentence = f"not allow configure multiple annotations <{words(_BUDGETS)}> at same time"
        refusals.append(Refusal(sentence, "metadata.annotations", f"keep {_BUDGETS[0]} or {_BUDGETS[1]}"))
    return Verdict(tuple(refusals), joining=Joining.SEMICOLON)


def resource_groups(document: Any) -> tuple[ResourceGroup, ...]:
    """Return the resource groups of an admission configuration, as its YAML was read."""
    return groups_of(entries(document, "resourceGroups"))


def groups_of(written: Sequence[Any]) -> tuple[ResourceGroup, ...]:
    """Return resource groups as they are written in a configuration."""
    return tuple(
        ResourceGroup(
            name=text(group, "resourceGroup"),
            key=text(group, "object", "key"),
            values=tuple(texts(group, "object", "value")),
            scheduler_name=text(group, "schedulerName"),
            tolerations=tuple(parts(group, "tolerations")),
            labels={key: _as_written(value) for key, value in part(group, "labels").items()},
            affinity=text(group, "affinity"),
        )
        for group in written
    )


def _belongs(pod: Obj, namespace: str, group: ResourceGroup) -> bool:
    if group.key == "namespace":
        return namespace in group.values
    annotations = annotations_of(pod)
    if group.key not in ("", "annotation"):
        return False
    if any(annotations.get(key) == value for text in group.values for key, value in _pairs(text)):
        return True
    return group.key == "" and annotations.get(keys.RESOURCE_GROUP) == group.name


def _pairs(written: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of an annotation that is written as YAML."""
    try:
        found = read_plain(written, "resourceGroups")
    except ConfError:
        return
    if isinstance(found, Mapping):
        yield from ((str(key), _as_written(value)) for key, value in found.items())


def _as_written(value: Any) -> str:
    """Return a scalar of YAML as an annotation or label has it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _affinity(group: ResourceGroup) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(group.affinity, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _asks_for_gate(pod: Obj, group: ResourceGroup, options: Options) -> bool:
    """Say whether a pod is to wait for its queue; only our scheduler takes the gate away."""
    if annotations_of(pod).get(keys.QUEUE_GATE) != "true" or text(pod, "spec", "nodeName"):
        return False  # the API server refuses a pod that has a gate and a node
    if any(text(gate, "name") == keys.QUEUE_GATE for gate in parts(pod, "spec", "schedulingGates")):
        return False
    scheduler = group.scheduler_name or text(pod, "spec", "schedulerName")
    return not scheduler or scheduler in options.scheduler_names


def _budget(key: str, value: str) -> Iterator[Refusal]:
    path = f"metadata.annotations[{key}]"
    if _is_number(value):
        if int(value) <= 0:
            yield Refusal(f"invalid value <{quoted(value)}> for {key}, it must be a positive integer", path, _HINT)
        return
    share = value.replace("%", "")
    if not _is_number(share):
        sentence = f"invalid value strconv.Atoi: parsing {quoted(share)}: invalid syntax for {key}"
        yield Refusal(sentence, path, _HINT)
    elif not 0 < int(share) < 100:
        sentence = f"invalid value <{quoted(value)}> for {key}, it must be a valid percentage which between 1% ~ 99%"
        yield Refusal(sentence, path, _HINT)


def _is_number(written: str) -> bool:
    return len(written) <= _DIGITS and _NUMBER.fullmatch(written) is not None
