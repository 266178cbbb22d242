"""Label selectors: which objects are meant by their labels."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from volcano_py.model.requirements import Requirement

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"


class LabelSelector(NamedTuple):
    """Requirements on labels of which all must hold, sorted; none at all selects everything.

    A selector that is absent on the wire selects nothing; where that can be, it is None instead of an object of this.
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
        case "NotIn":  # a label that is not there is not one of the values either
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    raise ValueError(f"operator {operator!r} on label {key}: use {IN}, {NOT_IN}, {EXISTS} or {DOES_NOT_EXIST}")
