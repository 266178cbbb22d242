"""Selectors over labels of pods, and over labels and fields of nodes."""

import re
from typing import Final

from volcano_py.admission import names
from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import Flaws, each, forbidden, invalid, required
from volcano_py.admission.pod_rules.metadata import labels
from volcano_py.admission.reading import part, parts, text, texts

_LISTS: Final = ("In", "NotIn")
_PRESENCE: Final = ("Exists", "DoesNotExist")
_NUMBERS: Final = ("Gt", "Lt")
_NUMBER: Final = re.compile(r"-?\d+", re.ASCII)


def label_selector(selector: Obj, path: str) -> Flaws:
    """Judge a selector over labels of pods."""
    yield from labels(part(selector, "matchLabels"), f"{path}.matchLabels")
    for index, expression in enumerate(parts(selector, "matchExpressions")):
        at, operator, values = _expression(expression, f"{path}.matchExpressions[{index}]")
        if operator in _LISTS and not values:
            yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in _PRESENCE and values:
            yield forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator not in (*_LISTS, *_PRESENCE):
            yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        yield from each(f"{at}.key", text(expression, "key"), names.qualified(text(expression, "key")))
        for number, value in enumerate(values):
            yield from each(f"{at}.values[{number}]", value, names.label_value(value))


def node_term(term: Obj, path: str, judge_values: bool) -> Flaws:
    """Judge one term of a selector over nodes; preferences may name values that no label can have."""
    for index, expression in enumerate(parts(term, "matchExpressions")):
        at, operator, values = _expression(expression, f"{path}.matchExpressions[{index}]")
        if operator in _LISTS and not values:
            yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in _PRESENCE and values:
            yield forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator in _NUMBERS and len(values) != 1:
            yield required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        elif operator not in (*_LISTS, *_PRESENCE, *_NUMBERS):
            yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        yield from each(f"{at}.key", text(expression, "key"), names.qualified(text(expression, "key")))
        if judge_values:
            for number, value in enumerate(values):
                yield from each(f"{at}.values[{number}]", value, names.label_value(value))
    for index, expression in enumerate(parts(term, "matchFields")):
        at, operator, values = _expression(expression, f"{path}.matchFields[{index}]")
        if operator not in _LISTS:
            yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        elif len(values) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(f"{at}.values", detail)
        if text(expression, "key") != "metadata.name":
            yield invalid(f"{at}.key", text(expression, "key"), "not a valid field selector key")
        else:
            for number, value in enumerate(values):
                yield from each(f"{at}.values[{number}]", value, names.subdomain(value))


def _expression(expression: Obj, path: str) -> tuple[str, str, list[str]]:
    return path, text(expression, "operator"), list(texts(expression, "values"))
