"""Where a pod may run: node selector, affinity, tolerations, spreading."""

from collections.abc import Sequence
from typing import Final

from volcano_py.admission import names
from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import (
    Flaws,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
)
from volcano_py.admission.pod_rules.metadata import labels
from volcano_py.admission.pod_rules.selectors import label_selector, node_term
from volcano_py.admission.reading import number, part, parts, text, texts

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")


def placement(spec: Obj, path: str) -> Flaws:
    """Judge what limits the nodes of a pod."""
    yield from labels(part(spec, "nodeSelector"), f"{path}.nodeSelector")
    affinity, at = part(spec, "affinity"), f"{path}.affinity"
    yield from _node_affinity(part(affinity, "nodeAffinity"), f"{at}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(part(affinity, kind), f"{at}.{kind}")
    for index, toleration in enumerate(parts(spec, "tolerations")):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    yield from _spread(parts(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints")


def _node_affinity(affinity: Obj, path: str) -> Flaws:
    if isinstance(affinity.get(_REQUIRED), dict):
        at = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        terms = parts(affinity, _REQUIRED, "nodeSelectorTerms")
        if not terms:
            yield required(at, "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from node_term(term, f"{at}[{index}]", judge_values=True)
    for index, preferred in enumerate(parts(affinity, _PREFERRED)):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(preferred, at)
        yield from node_term(part(preferred, "preference"), f"{at}.preference", judge_values=False)


def _pod_affinity(affinity: Obj, path: str) -> Flaws:
    for index, term in enumerate(parts(affinity, _REQUIRED)):
        yield from _pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(parts(affinity, _PREFERRED)):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(preferred, at)
        yield from _pod_term(part(preferred, "podAffinityTerm"), f"{at}.podAffinityTerm")


def _weight(preferred: Obj, path: str) -> Flaws:
    weight = number(preferred, "weight") or 0
    if not 0 < weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _pod_term(term: Obj, path: str) -> Flaws:
    for kind in ("labelSelector", "namespaceSelector"):
        yield from label_selector(part(term, kind), f"{path}.{kind}")
    for namespace in texts(term, "namespaces"):
        yield from each(f"{path}.namespace", namespace, names.label(namespace))
    yield from _label_keys(term, path)
    key = text(term, "topologyKey")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from each(f"{path}.topologyKey", key, names.qualified(key))


def _label_keys(term: Obj, path: str) -> Flaws:
    """Judge keys whose values come from the pod: none twice, none beside a selector of the same key."""
    match, mismatch = texts(term, "matchLabelKeys"), texts(term, "mismatchLabelKeys")
    if (match or mismatch) and not isinstance(term.get("labelSelector"), dict):
        field = "matchLabelKeys" if match else "mismatchLabelKeys"
        yield forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
        return
    selector = part(term, "labelSelector")
    used = {*part(selector, "matchLabels")} | {text(one, "key") for one in parts(selector, "matchExpressions")}
    for field, found in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        for index, key in enumerate(found):
            at = f"{path}.{field}[{index}]"
            yield from each(at, key, names.qualified(key))
            if key in used:
                yield invalid(at, key, "exists in both matchLabelKeys and labelSelector")
    for index, key in enumerate(match):
        if key in mismatch:
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")


def _toleration(toleration: Obj, path: str) -> Flaws:
    key, operator, value, effect = (text(toleration, field) for field in ("key", "operator", "value", "effect"))
    if key:
        yield from each(f"{path}.key", key, names.qualified(key))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    if number(toleration, "tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        yield from each(f"{path}.operator", value, names.label_value(value))
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    yield from one_of(f"{path}.effect", effect, _EFFECTS)


def _spread(constraints: Sequence[Obj], path: str) -> Flaws:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        skew, action = number(constraint, "maxSkew") or 0, text(constraint, "whenUnsatisfiable")
        key = text(constraint, "topologyKey")
        if skew <= 0:
            yield invalid(f"{at}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield required(f"{at}.topologyKey", "can not be empty")
        if action not in _ACTIONS:
            yield not_supported(f"{at}.whenUnsatisfiable", action, _ACTIONS)
        if (key, action) in seen:
            yield duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        seen.add((key, action))
        domains = number(constraint, "minDomains")
        if domains is not None:
            if domains <= 0:
                yield invalid(f"{at}.minDomains", domains, "must be greater than zero")
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield invalid(f"{at}.minDomains", domains, detail)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            value = constraint.get(policy)
            if isinstance(value, str) and value not in _POLICIES:
                yield not_supported(f"{at}.{policy}", value, _POLICIES)
        yield from _label_keys(constraint, at)
        yield from label_selector(part(constraint, "labelSelector"), f"{at}.labelSelector")
