"""Node selectors and required node affinity over int-coded label columns (kube-scheduler v1.36, nodeaffinity).

A requirement is evaluated once per distinct value of its label and then looked up per node. A term that cannot be
parsed matches no node, without a message, as in kube-scheduler; other terms may still match.
"""

import re
from typing import Final

import numpy as np

from volcano_py.model.arrays import Bools
from volcano_py.model.shape import NodeTerm, Requirement, Shape
from volcano_py.snapshot.columns import LabelColumn, NodeColumns

_NAME_FIELD: Final = "metadata.name"
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_KEY_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_KEY_PREFIX: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_LONGEST_VALUE: Final = 63
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def matches(shape: Shape, nodes: NodeColumns) -> Bools:
    """Say for each node whether the shape's node selector and required affinity match it, shape (n_nodes,)."""
    result = np.ones(len(nodes), dtype=bool)
    for key, value in shape.node_selector:
        result &= _labels(Requirement(key, "In", (value,)), nodes)
    if shape.node_affinity is not None:
        any_term = np.zeros(len(nodes), dtype=bool)
        for term in shape.node_affinity:
            any_term |= term_matches(term, nodes)
        result &= any_term
    return result


def names_conflict(shape: Shape) -> bool:
    """Say whether each required term lists node names in several requirements, and no name is in all of its lists."""
    # A Python loop over the terms of one shape; few shapes name nodes, and it ends at the first term that does not.
    for term in shape.node_affinity or ():
        lists = [set(one.values) for one in term.fields if one.key == _NAME_FIELD and one.operator == "In"]
        if not lists or set.intersection(*lists):
            return False
    return bool(shape.node_affinity)


def term_matches(term: NodeTerm, nodes: NodeColumns) -> Bools:
    """Say for each node whether a term matches it, shape (n_nodes,); an empty or invalid term never matches."""
    result = np.ones(len(nodes), dtype=bool)
    if term.empty or not valid_term(term):
        return ~result
    for requirement in term.expressions:
        result &= _labels(requirement, nodes)
    for requirement in term.fields:
        result &= _field(requirement, nodes)
    return result


def valid_term(term: NodeTerm) -> bool:
    """Say whether every requirement of a term can be parsed."""
    return all(map(valid_expression, term.expressions)) and all(map(valid_field, term.fields))


def valid_expression(requirement: Requirement) -> bool:
    """Say whether a requirement on labels can be parsed."""
    key, operator, values = requirement
    prefix, slash, name = key.rpartition("/")
    if not _KEY_NAME.fullmatch(name) or (slash and not (_KEY_PREFIX.fullmatch(prefix) and len(prefix) <= 253)):
        return False
    if not all(_LABEL_VALUE.fullmatch(value) for value in values):  # so Gt and Lt take no number with a sign
        return False
    if operator in ("In", "NotIn"):
        return bool(values)
    if operator in ("Exists", "DoesNotExist"):
        return not values
    return operator in ("Gt", "Lt") and len(values) == 1 and _integer(values[0]) is not None


def valid_field(requirement: Requirement) -> bool:
    """Say whether a requirement on fields can be parsed: In or NotIn with exactly one value."""
    return requirement.operator in ("In", "NotIn") and len(requirement.values) == 1


def _labels(requirement: Requirement, nodes: NodeColumns) -> Bools:
    column = nodes.label(requirement.key)
    if column is None:
        return np.full(len(nodes), requirement.operator in ("NotIn", "DoesNotExist"))
    result: Bools = _answers(requirement, column)[column.codes]
    return result


def _answers(requirement: Requirement, column: LabelColumn) -> Bools:
    """Return the answer for every code of the column; code 0 is a node without the label."""
    operator, values = requirement.operator, requirement.values
    table = column.table()
    if operator in ("Exists", "DoesNotExist"):
        table[1:] = True
    elif operator in ("In", "NotIn"):
        wanted = set(values)
        table[1:] = [value in wanted for value in column.values[1:]]
    else:
        bound = _integer(values[0])
        found = [_integer(value) for value in column.values[1:]]
        table[1:] = [
            number is not None and bound is not None and (number > bound if operator == "Gt" else number < bound)
            for number in found
        ]
    return ~table if operator in ("NotIn", "DoesNotExist") else table


def _field(requirement: Requirement, nodes: NodeColumns) -> Bools:
    if requirement.key != _NAME_FIELD:  # any other field reads as ""
        equal = np.full(len(nodes), requirement.values[0] == "")
    else:
        equal = np.zeros(len(nodes), dtype=bool)
        row = nodes.statics.row_of.get(requirement.values[0])
        if row is not None:
            equal[row if nodes.rows is None else np.flatnonzero(nodes.rows == row)] = True
    return ~equal if requirement.operator == "NotIn" else equal


def _integer(text: str) -> int | None:
    """Return a 64-bit decimal integer as Go's ParseInt reads it, None for anything else."""
    if not _INTEGER.fullmatch(text) or len(text) > _LONGEST_VALUE:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
