"""Label selectors: they select objects by their labels."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from volcano_py.model.requirements import Requirement

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"


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
