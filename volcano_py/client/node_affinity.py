"""Required node affinity of a pod, as kube-scheduler reads it: one term must match, with all of its requirements."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Obj = Mapping[str, Any]
_NAME: Final = "metadata.name"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def unmatched(wishes: Obj, node: Obj) -> str:
    """Return the terms of the required affinity of a pod's spec if a node matches none of them, else nothing."""
    affinity = (wishes.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return ""
    terms = required.get("nodeSelectorTerms") or ()
    metadata = node["metadata"]
    labels, fields = metadata.get("labels") or {}, {_NAME: metadata["name"]}
    if any(_term_holds(term, labels, fields) for term in terms):
        return ""
    return " or ".join(" and ".join(map(_written, _requirements(term))) or "nothing" for term in terms) or "nothing"


def _term_holds(term: Obj, labels: Obj, fields: Obj) -> bool:
    """Say whether a term matches; an empty one never does."""
    return bool(_requirements(term)) and (
        all(_holds(one, labels) for one in term.get("matchExpressions") or ())
        and all(_holds(one, fields) for one in term.get("matchFields") or ())
    )


def _requirements(term: Obj) -> list[Obj]:
    return [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]


def _holds(requirement: Obj, labels: Obj) -> bool:
    found = labels.get(str(requirement.get("key")))
    values: Sequence[Any] = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt" as operator if found is not None and len(values) == 1:
            if not _INTEGER.fullmatch(found) or not _INTEGER.fullmatch(str(values[0])):
                return False
            return int(found) > int(values[0]) if operator == "Gt" else int(found) < int(values[0])
    return False


def _written(requirement: Obj) -> str:
    """Return a requirement as text; the most common one looks like a label."""
    key, operator = requirement.get("key"), requirement.get("operator")
    values: Sequence[Any] = requirement.get("values") or ()
    if operator == "In" and len(values) == 1:
        return f"{key}={values[0]}"
    if operator in ("In", "NotIn"):
        return f"{key} {'in' if operator == 'In' else 'not in'} ({', '.join(map(str, values))})"
    if operator in ("Gt", "Lt"):
        return f"{key} {'>' if operator == 'Gt' else '<'} {values[0] if values else '?'}"
    return f"{key} exists" if operator == "Exists" else f"no label {key}"
