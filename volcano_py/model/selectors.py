"""Label selectors: they select objects by their labels."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from volcano_py.api import meta as wire
from volcano_py.model.requirements import Requirement

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
_WITH_VALUES: Final = (IN, NOT_IN)
_WITHOUT_VALUES: Final = (EXISTS, DOES_NOT_EXIST)


class LabelSelector(NamedTuple):
    """Requirements on labels, all of which must hold, sorted; no requirement selects everything.

    A selector that is absent on the wire selects nothing. It is represented by None instead of a LabelSelector.
    """

    requirements: tuple[Requirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it requires nothing and so selects everything."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether an object with these labels is selected (apimachinery: LabelSelectorAsSelector)."""
        return all(_holds(requirement, labels) for requirement in self.requirements)


EVERYTHING: Final = LabelSelector()


def label_selector(selector: wire.LabelSelector, where: str) -> LabelSelector:
    """Return a selector as requirements; raise ValueError naming the field that cannot be read."""
    requirements = [Requirement(key, IN, (value,)) for key, value in selector.match_labels.items()]
    for index, written in enumerate(selector.match_expressions):
        field = f"{where}.matchExpressions[{index}]"
        if written.operator not in (*_WITH_VALUES, *_WITHOUT_VALUES):
            known = ", ".join((*_WITH_VALUES, *_WITHOUT_VALUES))
            raise ValueError(f"{field}.operator: {written.operator!r} is not an operator: use one of {known}")
        if (written.operator in _WITH_VALUES) != bool(written.values):
            needed = "at least one" if written.operator in _WITH_VALUES else "none"
            raise ValueError(f"{field}.values: {len(written.values)} given, operator {written.operator} takes {needed}")
        requirements.append(Requirement(written.key, written.operator, tuple(sorted(written.values))))
    return LabelSelector(tuple(sorted(requirements)))


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":  # a missing label satisfies NotIn, too
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    raise ValueError(f"operator {operator!r} on label {key}: use {IN}, {NOT_IN}, {EXISTS} or {DOES_NOT_EXIST}")
