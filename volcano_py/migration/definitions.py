"""Checks the definitions of custom resources: what Volcano's have and ours lack, and the other way round."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, ref_of, sequence, shortened, text

_UNREAD: Final = frozenset(
    {
        "numatopologies.nodeinfo.volcano.sh",
        "colocationconfigurations.config.volcano.sh",
        "nodeshards.shard.volcano.sh",
    }
)
"""Kinds without a reader here, unless somebody asks for them: it does not matter if their definition is missing."""
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_RULES: Final = "x-kubernetes-validations"
_DEEPEST: Final = 40
_MOST: Final = 8
_APPLY: Final = "apply manifests/crds"
_FOLLOWED: Final = frozenset({"workloadRef", "schedulingGroup"})
"""Fields of pods that one version of Kubernetes has, and another one has not."""
_LIMITS: Final = ("enum", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern")


def judge_definitions(found: list[Obj], ours: Mapping[str, Obj]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield every definition of Volcano with what differs, and those that are missing."""
    names = set()
    for definition in found:
        name, group = text(definition, "metadata", "name"), text(definition, "spec", "group")
        if not group.endswith((".volcano.sh", ".incubator.k8s.io")):
            continue
        names.add(name)
        ref = ref_of(definition, "CustomResourceDefinition")
        yield ref, list(_judge(ref, definition, ours[name]) if name in ours else _unknown(ref, definition))
    for name in sorted(set(ours) - names - _UNREAD):
        ref = Ref("CustomResourceDefinition", name)
        what = "the definition is missing in the cluster; our programs watch its objects"
        yield ref, [Finding(Group.DIFFERS, "definition-missing", ref, what, f"{_APPLY} before you start ours")]


def _unknown(ref: Ref, definition: Obj) -> Iterator[Finding]:
    kind = text(definition, "spec", "names", "kind")
    what = f"nothing here knows {kind}; its objects stay, but none of our programs acts on them"
    yield Finding(Group.MISSING, "definition-unknown", ref, what, "keep the program that acts on them, if there is one")


def _judge(ref: Ref, theirs: Obj, ours: Obj) -> Iterator[Finding]:
    scope, wanted = text(theirs, "spec", "scope"), text(ours, "spec", "scope")
    if scope != wanted:
        yield Finding(Group.BLOCKS, "definition-scope", ref, f"its scope is {scope}, ours is {wanted}", _NO_WAY)
        return
    kinds = text(theirs, "spec", "names", "kind"), text(ours, "spec", "names", "kind")
    if kinds[0] != kinds[1]:
        yield Finding(Group.BLOCKS, "definition-kind", ref, f"its kind is {kinds[0]}, ours is {kinds[1]}", _NO_WAY)
        return
    names = {
        kind: sorted(
            set(map(str, sequence(theirs, "spec", "names", kind))) - set(sequence(ours, "spec", "names", kind))
        )
        for kind in ("shortNames", "categories")
    }
    if further := [name for found in names.values() for name in found]:
        what = f"kubectl knows its objects as {', '.join(further)}, too; with ours it does not"
        yield Finding(Group.REPLACED, "definition-names", ref, what, "tell those who use these names")
    if text(theirs, "spec", "conversion", "strategy") == "Webhook":
        what = "a webhook converts its objects; ours has one version and no conversion"
        yield Finding(Group.REPLACED, "definition-conversion", ref, what, "find out who needs the other version")
    versions, our_versions = _versions(theirs), _versions(ours)
    yield from _other_versions(ref, theirs, versions, our_versions)
    for name, version in our_versions.items():
        if name in versions:
            yield from _version(ref, versions[name], version)


_NO_WAY: Final = "neither can be changed: the definition would have to be deleted, with all its objects"


def _other_versions(ref: Ref, theirs: Obj, versions: Mapping[str, Obj], ours: Mapping[str, Obj]) -> Iterator[Finding]:
    missing = [name for name, one in ours.items() if not versions.get(name, {}).get("served")]
    if missing:
        what = f"it does not serve {', '.join(missing)}, which our programs use"
        yield Finding(Group.BLOCKS, "definition-version", ref, what, f"{_APPLY} first")
    stored = {name for name in sequence(theirs, "status", "storedVersions") if isinstance(name, str)} - set(ours)
    if stored:
        what = f"objects are stored as {', '.join(sorted(stored))}, so the API server refuses our definition"
        yield Finding(
            Group.BLOCKS, "definition-stored", ref, what, "migrate the stored objects to the served version first"
        )
        return
    further = sorted(name for name, one in versions.items() if one.get("served") and name not in ours)
    if further:
        what = f"it also serves {', '.join(further)}, which ours does not"
        yield Finding(Group.REPLACED, "definition-version", ref, what, "change the clients that use it")


def _versions(definition: Obj) -> dict[str, Obj]:
    return {text(one, "name"): one for one in sequence(definition, "spec", "versions") if isinstance(one, dict)}


def _version(ref: Ref, theirs: Obj, ours: Obj) -> Iterator[Finding]:
    own, other = "status" in mapping(ours, "subresources"), "status" in mapping(theirs, "subresources")
    if own != other:
        what = f"it has {'a' if other else 'no'} status subresource, ours has {'one' if own else 'none'}"
        advice = "apply ours; then programs that write the status must use the other way"
        yield Finding(Group.DIFFERS, "definition-status", ref, what, advice)
    if mapping(theirs, "subresources").get("scale") and not mapping(ours, "subresources").get("scale"):
        what = "it has a scale subresource, ours has none: kubectl scale and autoscalers use it"
        yield Finding(Group.REPLACED, "definition-scale", ref, what, "keep this definition, or do without it")
    schema, our_schema = mapping(theirs, "schema", "openAPIV3Schema"), mapping(ours, "schema", "openAPIV3Schema")
    lost = [path for path in _beyond(schema, our_schema) if path.rpartition(".")[2] not in _FOLLOWED]
    if lost:
        what = f"it has fields that ours lacks, so the API server would drop them: {_listed(lost)}"
        yield Finding(Group.REPLACED, "definition-fields", ref, what, "keep this definition, or do without the fields")
    new = [path for path in _beyond(our_schema, schema) if not _is_of_pods(path)]
    if new:
        what = f"it lacks fields that ours has, so they have no effect: {_listed(new)}"
        yield Finding(Group.DIFFERS, "definition-older", ref, what, _APPLY)
    limits = list(_limits(schema, our_schema))
    if limits:
        what = f"it has other limits than ours: {_listed(limits)}"
        yield Finding(Group.REPLACED, "definition-limits", ref, what, "compare the two definitions at these fields")


def _listed(paths: list[str]) -> str:
    shown = ", ".join(paths[:_MOST])
    return f"{shown} and {len(paths) - _MOST} more" if len(paths) > _MOST else shown


def _is_of_pods(path: str) -> bool:
    """Say whether a field belongs to Kubernetes, whose version decides which fields pods have."""
    return ".template.spec." in path or ".volumeClaim." in path


def _beyond(one: Obj, other: Obj, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the fields of a schema that another one lacks, the highest of each branch."""
    if one.get(_PRESERVE) and not other.get(_PRESERVE) and not _open(other):
        yield f"all unknown ones below {path or 'the object'}"
    if other.get(_PRESERVE) or _open(other) or one.get(_PRESERVE) or depth > _DEEPEST:
        return
    properties = mapping(other, "properties")
    for name, field in mapping(one, "properties").items():
        here = f"{path}.{name}" if path else name
        if here in ("apiVersion", "kind", "metadata"):
            continue
        if name not in properties:
            yield here
        elif isinstance(field, dict) and isinstance(properties[name], dict):
            yield from _beyond(field, properties[name], here, depth + 1)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        ours, theirs = one.get(key), other.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            yield from _beyond(ours, theirs, path + mark, depth + 1)


def _open(schema: Obj) -> bool:
    """Say whether a schema takes any key: a mapping with values of one type, or no structure at all."""
    return not schema.get("properties") and not schema.get("items")


def _limits(one: Obj, other: Obj, path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the fields that have another type, other words or other required fields, or another range."""
    if depth > _DEEPEST or one.get(_PRESERVE) or other.get(_PRESERVE) or _is_of_pods(f"{path}."):
        return
    if one.get("type") and other.get("type") and one["type"] != other["type"]:
        yield f"{path} (type {one['type']}, ours {other['type']})"
        return
    for limit in _LIMITS:
        theirs, ours = one.get(limit), other.get(limit)
        if isinstance(theirs, list) and isinstance(ours, list):
            theirs, ours = sorted(map(str, theirs)), sorted(map(str, ours))
        if theirs != ours and theirs is not None:
            yield f"{path} ({_shown(limit, theirs, ours)})"
    default = other.get("default")
    # A patch of a step has no defaults here: they would overwrite what the template says.
    if one.get("default") not in (None, default) and not (default is None and ".patch.jobSpec." in path):
        yield f"{path} ({_shown('default', one['default'], default)})"
    if sequence(one, _RULES) and not sequence(other, _RULES):
        yield f"{path or 'the object'} (rules of its own)"
    further = {str(name) for name in sequence(one, "required")} - {str(name) for name in sequence(other, "required")}
    if further:
        yield f"{path or 'the object'} (required: {', '.join(sorted(further))})"
    yield from _limits_below(one, other, path, depth)


def _shown(limit: str, theirs: Any, ours: Any) -> str:
    if limit == "pattern":
        return limit
    if isinstance(theirs, list) and isinstance(ours, list):
        theirs, ours = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
        return f"{limit} with {', '.join(theirs) or 'no other words'}, ours with {', '.join(ours) or 'no other words'}"
    return f"{limit} {shortened(theirs, 30)}, ours {'none' if ours is None else shortened(ours, 30)}"


def _limits_below(one: Obj, other: Obj, path: str, depth: int) -> Iterator[str]:
    properties: Mapping[str, Any] = mapping(other, "properties")
    for name, field in mapping(one, "properties").items():
        here = f"{path}.{name}" if path else name
        if isinstance(field, dict) and isinstance(properties.get(name), dict) and here != "metadata":
            yield from _limits(field, properties[name], here, depth + 1)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        theirs, ours = one.get(key), other.get(key)
        if isinstance(theirs, dict) and isinstance(ours, dict):
            yield from _limits(theirs, ours, path + mark, depth + 1)
