"""Queues: their defaults, their own numbers, and their place in the hierarchy."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from volcano_py.admission.amounts import Amounts, amount, amounts, exceeding, shown, shown_list, total
from volcano_py.admission.contract import (
    ALLOWED,
    CREATE,
    DELETE,
    UPDATE,
    Joining,
    Obj,
    Options,
    Refusal,
    Request,
    Verdict,
    View,
)
from volcano_py.admission.queue_state import missing
from volcano_py.admission.reading import annotations_of, invalid, name_of, part, quoted, text, words
from volcano_py.admission.resource_names import counted_whole
from volcano_py.api import keys

_STATES: Final = (keys.QUEUE_OPEN, keys.QUEUE_CLOSED)
_LISTS: Final = (("capability",), ("deserved",), ("guarantee", "resource"))
_BODY: Final = "requestBody."
_FLOAT: Final = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)

# Mutation


def mutate(request: Request, view: View, options: Options) -> Verdict:
    """Set the defaults of a new queue; its place by annotation begins at the root."""
    if request.operation != CREATE:
        return Verdict((Refusal(f"invalid operation `{request.operation}`, expect operation to be `CREATE`"),))
    queue = request.object
    if not isinstance(queue.get("spec", {}), Mapping | None):
        return ALLOWED  # the definition of queues refuses it
    annotations = annotations_of(queue)
    path, weights = annotations.get(keys.HIERARCHY, ""), annotations.get(keys.HIERARCHY_WEIGHTS, "")
    patch: list[Obj] = []
    if path and weights and not path.startswith(keys.ROOT_QUEUE):
        patch.append(_annotation(keys.HIERARCHY, f"{keys.ROOT_QUEUE}/{path}"))
        patch.append(_annotation(keys.HIERARCHY_WEIGHTS, f"1/{weights}"))
    if queue.get("spec") is None:
        patch.append({"op": "add", "path": "/spec", "value": {}})
    if part(queue, "spec").get("reclaimable") is None:
        patch.append({"op": "add", "path": "/spec/reclaimable", "value": True})
    if not part(queue, "spec").get("weight"):
        patch.append({"op": "add", "path": "/spec/weight", "value": 1})
    return Verdict(patch=tuple(patch))


def _annotation(key: str, value: str) -> Obj:
    return {"op": "add", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": value}


# Validation


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a queue that contradicts itself, its relatives or its pods, and a deletion that leaves some of them."""
    if request.operation == DELETE:
        return Verdict(tuple(_deletion(request.name or name_of(request.old), view, options)), joining=Joining.LIST)
    if request.operation not in (CREATE, UPDATE):
        sentence = f"invalid operation `{request.operation}`, expect operation to be `CREATE`, `UPDATE` or `DELETE`"
        return Verdict((Refusal(sentence),))
    queue, old = request.object, request.old if request.operation == UPDATE else None
    refusals = [*_numbers(queue), *_state(queue, request.old), *_by_annotation(queue, view)]
    if old is not None and options.protect_root_queue:
        refusals += _root(queue, old)
    parent = text(queue, "spec", "parent")
    moved = old is None or parent != text(old, "spec", "parent")
    placed = _place(queue, view, options) if moved else []
    refusals += placed
    if not placed and name_of(queue) != keys.ROOT_QUEUE and (moved or old is None or _changed(queue, old)):
        refusals += against_ancestors(queue, view)
        refusals += against_siblings(queue, view)
        refusals += against_children(queue, view, list(view.children(name_of(queue))))
    return Verdict(tuple(refusals), joining=Joining.LIST)


def _numbers(queue: Obj) -> Iterator[Refusal]:
    """Judge the amounts of a queue on their own: guarantee <= deserved <= capability."""
    for path in _LISTS:
        for name, written in part(queue, "spec", *path).items():
            yield from _quantity(name, written, ".".join(("spec", *path, name)))
    spec = part(queue, "spec")
    capability, deserved, guarantee = (part(spec, *path) for path in _LISTS)
    for name, least in guarantee.items():
        field = f"spec.deserved.{name}"
        floor, share = amount(least), amount(deserved.get(name))
        hint = f"raise deserved[{name}] to {least} or lower the guarantee"
        if name not in deserved:
            detail = f"deserved[{name}] must be >= guarantee[{name}]={least}"
            yield invalid(field, "<nil>", detail, hint, _BODY + field)
        elif floor is not None and share is not None and share < floor:
            detail = f"deserved[{name}]={deserved[name]} must be >= guarantee[{name}]={least}"
            yield invalid(field, str(deserved[name]), detail, hint, _BODY + field)
    for name, written in deserved.items():
        field = f"spec.deserved.{name}"
        share, most = amount(written), amount(capability.get(name))
        if share is not None and most is not None and share > most:
            detail = f"deserved[{name}]={written} must be <= capability[{name}]={capability[name]}"
            hint = f"lower deserved[{name}] to {capability[name]} or raise the capability"
            yield invalid(field, str(written), detail, hint, _BODY + field)


def _quantity(name: str, written: Any, field: str) -> Iterator[Refusal]:
    value = amount(written)
    if value is None:
        yield invalid(field, str(written), "must be a quantity", "write a number such as 500m, 2 or 1Gi", _BODY + field)
    elif value < 0:
        detail = "must be greater than or equal to 0"
        yield invalid(field, str(written), detail, "write 0 or more, or leave the resource out", _BODY + field)
    elif counted_whole(name) and value.denominator != 1:
        yield invalid(field, str(written), "must be an integer", "write a whole number", _BODY + field)


def _state(queue: Obj, old: Obj) -> Iterator[Refusal]:
    """Judge a state that somebody sets; a queue keeps the one that its controller gave it, such as Closing."""
    state = text(queue, "status", "state")
    if state and state not in _STATES and state != text(old, "status", "state"):
        hint = "wait until the queue is open or closed; vcctl queue operate opens and closes it"
        yield invalid("status.state", state, f"queue state must be in {words(_STATES)}", hint, f"{_BODY}spec.state")


def _by_annotation(queue: Obj, view: View) -> Iterator[Refusal]:
    """Judge the place of a queue that annotations give it (plugin drf)."""
    annotations = annotations_of(queue)
    path, weights = annotations.get(keys.HIERARCHY, ""), annotations.get(keys.HIERARCHY_WEIGHTS, "")
    if not path and not weights:
        return
    shown_at = f"{_BODY}metadata.annotations"
    field = f"metadata.annotations[{keys.HIERARCHY}]"
    if path.count("/") != weights.count("/"):
        detail = f"{keys.HIERARCHY} must have the same length with {keys.HIERARCHY_WEIGHTS}"
        yield invalid(field, path, detail, "write one weight for each part of the path, such as 1/2/3", shown_at)
    for weight in dict.fromkeys(weights.split("/")):
        if problem := _weight_flaw(weight):
            at = f"metadata.annotations[{keys.HIERARCHY_WEIGHTS}]"
            detail = f"{weight} in the {weights} {problem}"
            yield invalid(at, weights, detail, "write a number above 0 for each part of the path", shown_at)
    for other in view.queues():
        place = annotations_of(other).get(keys.HIERARCHY, "")
        if place.startswith(f"{path}/") and name_of(other) != name_of(queue):
            detail = f"{path} is not allowed to be in the sub path of {place} of queue {name_of(other)}"
            yield invalid(field, path, detail, "choose a path that no other queue goes through", shown_at)


def _weight_flaw(weight: str) -> str:
    if not _FLOAT.fullmatch(weight):
        return f"is invalid number: strconv.ParseFloat: parsing {quoted(weight)}: invalid syntax"
    value = float(weight)
    return "must be larger than 0" if value <= 0 or math.isnan(value) else ""


def _root(queue: Obj, old: Obj) -> Iterator[Refusal]:
    if name_of(queue) == keys.ROOT_QUEUE and _changed(queue, old):
        sentence = "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
        hint = "limit its children instead, or start vc-webhook-manager with --enable-root-queue-protection=false"
        yield Refusal(sentence, "spec", hint)


def _changed(queue: Obj, old: Obj) -> bool:
    return any(not _same(part(queue, "spec", *path), part(old, "spec", *path)) for path in _LISTS)


def _same(one: Obj, other: Obj) -> bool:
    return amounts(one) == amounts(other) and one.keys() == other.keys()


# Place


def _place(queue: Obj, view: View, options: Options) -> list[Refusal]:
    """Judge the parent of a queue."""
    name, parent = name_of(queue), text(queue, "spec", "parent")
    field = "spec.parent"
    if parent in ("", keys.ROOT_QUEUE):
        return []
    if parent == name:
        hint = f"name another queue as its parent, such as {keys.ROOT_QUEUE}"
        return [Refusal(f"queue {name} cannot use itself as parent", field, hint)]
    if refusal := depth_flaw(queue, view, options.max_queue_depth):
        return [refusal]
    above = view.queue(parent)
    if above is None:
        return [_no_parent(name, parent)]
    pods = view.allocated_pods(parent)
    if pods > 0 and not any(True for _ in view.children(parent)):
        sentence = f"queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}"
        return [Refusal(sentence, field, f"wait until the pods of {parent} have ended, or choose another parent")]
    return []


def depth_flaw(queue: Obj, view: View, most: int) -> Refusal | None:
    """Judge how deep a queue stands; children of root have depth 1."""
    name, field = name_of(queue), "spec.parent"
    depth, parent = 1, text(queue, "spec", "parent")
    while parent not in ("", keys.ROOT_QUEUE):
        depth += 1
        if parent == name:
            sentence = f"queue {name} cannot use its own descendant {text(queue, 'spec', 'parent')} as parent"
            return Refusal(sentence, field, "choose a parent that is not below the queue")
        if depth > most:
            sentence = f"queue {name} exceeds the maximum allowed depth of {most}"
            hint = "choose a parent nearer to root, or raise --max-queue-depth of vc-webhook-manager"
            return Refusal(sentence, field, hint)
        above = view.queue(parent)
        if above is None:
            return _no_parent(name, parent)
        parent = text(above, "spec", "parent")
    return None


def _no_parent(name: str, parent: str) -> Refusal:
    sentence = f"failed to get parent queue {parent} of queue {name}: {missing(parent)}"
    return Refusal(sentence, "spec.parent", f"create queue {parent} first, or choose another parent")


# Relatives


def against_ancestors(queue: Obj, view: View) -> Iterator[Refusal]:
    """Judge the capability of a queue: for each resource, the nearest ancestor that limits it sets the most."""
    name = name_of(queue)
    for resource, value in amounts(part(queue, "spec", "capability")).items():
        limit = _nearest_limit(queue, resource, view)
        if limit is not None and value > limit:
            own, most = shown(resource, value), shown(resource, limit)
            sentence = f"queue {name} capability[{resource}]={own} exceeds its ancestor's capability={most}"
            hint = f"lower capability[{resource}] or raise that of the ancestors"
            yield Refusal(sentence, f"spec.capability.{resource}", hint)


def _nearest_limit(queue: Obj, resource: str, view: View) -> Fraction | None:
    seen = {name_of(queue)}
    parent = text(queue, "spec", "parent")
    while parent not in ("", keys.ROOT_QUEUE) and parent not in seen:
        seen.add(parent)
        above = view.queue(parent)
        if above is None:
            return None
        limit = amount(part(above, "spec", "capability").get(resource))
        if limit is not None and limit > 0:
            return limit
        parent = text(above, "spec", "parent")
    return None


def against_siblings(queue: Obj, view: View) -> Iterator[Refusal]:
    """Judge the sums of guarantee and deserved of a queue and its siblings: their parent has as much."""
    parent = text(queue, "spec", "parent")
    above = None if parent in ("", keys.ROOT_QUEUE) else view.queue(parent)
    if above is not None:
        others = [other for other in view.children(parent) if name_of(other) != name_of(queue)]
        yield from _sums([*others, queue], above, f"parent queue {parent}", parent)


def against_children(queue: Obj, view: View, children: Sequence[Obj]) -> Iterator[Refusal]:
    """Judge a queue by those below it: its capability reaches for each, its guarantee and deserved for all children."""
    if children:
        yield from _limits_of_descendants(queue, children, view)
        yield from _sums(children, queue, f"queue {name_of(queue)}", name_of(queue))


def _limits_of_descendants(queue: Obj, children: Sequence[Obj], view: View) -> Iterator[Refusal]:
    """Judge the capability of a queue by that of its descendants."""
    name = name_of(queue)
    for resource, value in amounts(part(queue, "spec", "capability")).items():
        most = max((_largest(child, resource, view, {name}) for child in children), default=Fraction(0))
        if value < most:
            own, below = shown(resource, value), shown(resource, most)
            sentence = (
                f"queue {name} capability[{resource}]={own} is smaller than its descendants' max capability={below}"
            )
            hint = f"raise capability[{resource}] or lower that of the descendants first"
            yield Refusal(sentence, f"spec.capability.{resource}", hint)


def _largest(queue: Obj, resource: str, view: View, seen: set[str]) -> Fraction:
    """Return the greatest capability in a subtree; whoever has one has enough for those below."""
    own = amount(part(queue, "spec", "capability").get(resource))
    if own is not None and own > 0:
        return own
    if name_of(queue) in seen:
        return Fraction(0)
    below = {*seen, name_of(queue)}
    return max((_largest(child, resource, view, below) for child in view.children(name_of(queue))), default=Fraction(0))


def _sums(children: Sequence[Obj], above: Obj, who: str, parent: str) -> Iterator[Refusal]:
    """Judge the sums over children; what the parent does not name counts as 0."""
    kinds: tuple[tuple[str, Callable[[Obj], Amounts]], ...] = (
        ("guarantee", lambda one: amounts(part(one, "spec", "guarantee", "resource"))),
        ("deserved", lambda one: amounts(part(one, "spec", "deserved"))),
    )
    for kind, of in kinds:
        wanted, limit = total(of(child) for child in children), of(above)
        if over := exceeding(wanted, limit):
            sentence = (
                f"{who} validation failed: sum of children's {kind} ({shown_list(wanted)}) exceeds "
                f"parent's {kind} limit ({shown_list(limit)})"
            )
            hint = f"raise {kind} of queue {parent} or lower that of its children: {', '.join(over)}"
            yield Refusal(sentence, f"spec.{kind}", hint)


# Deletion


def _deletion(name: str, view: View, options: Options) -> Iterator[Refusal]:
    if name in (keys.DEFAULT_QUEUE, keys.ROOT_QUEUE):
        yield Refusal(f"`{name}` queue can not be deleted", "metadata.name", "close it instead, if nobody is to use it")
        return
    if view.queue(name) is None:
        yield Refusal(missing(name), "metadata.name")
        return
    pods = view.allocated_pods(name) if options.check_allocated_pods else 0
    if pods > 0:
        sentence = f"queue {name} cannot be deleted because it has allocated Pods: {pods}"
        yield Refusal(sentence, "metadata.name", "close the queue and wait until its pods have ended")
    children = sorted(name_of(child) for child in view.children(name))
    if children:
        sentence = f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"
        yield Refusal(sentence, "metadata.name", "delete or move its child queues first")
