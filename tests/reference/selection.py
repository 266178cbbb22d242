"""Which nodes are statically feasible for a pod: the rules of kube-scheduler's filters in plain Python."""

from volcano_py.model.objects import NodeRecord, TaintRecord
from volcano_py.model.shape import NodeTerm, Requirement, Shape, Tolerance

UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
ALNUM = UPPER + UPPER.lower() + DIGITS


def static_reason(shape: Shape, node: NodeRecord) -> str:
    """Return the code of the first filter that refuses, "" if all pass."""
    if shape.node_affinity and all(_impossible_name(term) for term in shape.node_affinity):
        return "node-affinity-conflict"
    cordon = TaintRecord("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if node.unschedulable and not any(tolerates(one, cordon) for one in shape.tolerations):
        return "node-unschedulable"
    if not selected(shape, node):
        return "node-affinity"
    for taint in node.taints:
        keeps_away = taint.effect in ("NoSchedule", "NoExecute")
        if keeps_away and not any(tolerates(one, taint) for one in shape.tolerations):
            return "taint-toleration"
    return ""


def _impossible_name(term: NodeTerm) -> bool:
    lists = [one.values for one in term.fields if one.key == "metadata.name" and one.operator == "In"]
    return bool(lists) and not any(all(name in values for values in lists) for name in lists[0])


def tolerates(tolerance: Tolerance, taint: TaintRecord) -> bool:
    effect = tolerance.effect in ("", taint.effect)
    key = tolerance.key in ("", taint.key)
    if tolerance.operator == "Exists":
        return effect and key
    if tolerance.operator in ("", "Equal"):
        return effect and key and tolerance.value == taint.value
    return False


def selected(shape: Shape, node: NodeRecord) -> bool:
    for key, value in shape.node_selector:
        if node.labels.get(key) != value:
            return False
    if shape.node_affinity is None:
        return True
    return any(matches(term, node) for term in shape.node_affinity)


def matches(term: NodeTerm, node: NodeRecord) -> bool:
    if not term.expressions and not term.fields:
        return False
    if not all(_valid_expression(one) for one in term.expressions) or not all(_valid_field(one) for one in term.fields):
        return False
    return all(_label(one, node) for one in term.expressions) and all(_field(one, node) for one in term.fields)


def _valid_field(requirement: Requirement) -> bool:
    return requirement.operator in ("In", "NotIn") and len(requirement.values) == 1


def _valid_expression(requirement: Requirement) -> bool:
    key, operator, values = requirement
    parts = key.split("/")
    if len(parts) > 2 or not _qualified(parts[-1]) or (len(parts) == 2 and not _domain(parts[0])):
        return False
    if not all(value == "" or _qualified(value) for value in values):
        return False
    if operator in ("In", "NotIn"):
        return len(values) > 0
    if operator in ("Exists", "DoesNotExist"):
        return len(values) == 0
    if operator in ("Gt", "Lt"):
        return len(values) == 1 and parse_int(values[0]) is not None
    return False


def _qualified(text: str) -> bool:
    """Return whether a text may be a label's name or value: at most 63 characters, alphanumeric at both ends."""
    if not 1 <= len(text) <= 63 or text[0] not in ALNUM or text[-1] not in ALNUM:
        return False
    return all(character in ALNUM + "-_." for character in text)


def _domain(text: str) -> bool:
    small = UPPER.lower() + DIGITS
    return 1 <= len(text) <= 253 and all(
        label and label[0] in small and label[-1] in small and all(character in small + "-" for character in label)
        for label in text.split(".")
    )


def parse_int(text: str) -> int | None:
    """Read a decimal 64-bit integer with an optional sign."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or any(character not in DIGITS for character in digits):
        return None
    number = 0
    for character in digits:
        number = number * 10 + DIGITS.index(character)
    if text[0] == "-":
        number = -number
    return number if -(2**63) <= number <= 2**63 - 1 else None


def _label(requirement: Requirement, node: NodeRecord) -> bool:
    key, operator, values = requirement
    if key not in node.labels:
        return operator in ("NotIn", "DoesNotExist")
    value = node.labels[key]
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator in ("Exists", "DoesNotExist"):
        return operator == "Exists"
    number, bound = parse_int(value), parse_int(values[0])
    if number is None or bound is None:
        return False
    return number > bound if operator == "Gt" else number < bound


def _field(requirement: Requirement, node: NodeRecord) -> bool:
    value = node.name if requirement.key == "metadata.name" else ""
    return (value == requirement.values[0]) == (requirement.operator == "In")
