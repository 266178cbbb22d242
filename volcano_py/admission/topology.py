"""The one rule of a network topology: its highest tier is given as a number or by name, not both."""

from typing import Any, Final

from volcano_py.admission.contract import Refusal
from volcano_py.admission.reading import number, part, text

_BOTH: Final = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
_HINT: Final = "keep highestTierAllowed or highestTierName"


def tier_given_twice(owner: Any, path: str, before: str = "", after: str = "") -> tuple[Refusal, ...]:
    """Judge ``networkTopology`` of an owner; ``before`` and ``after`` are put around the sentence."""
    topology = part(owner, "networkTopology")
    if number(topology, "highestTierAllowed") is None or not text(topology, "highestTierName"):
        return ()
    return (Refusal(f"{before}{_BOTH}{after}", f"{path}.networkTopology", _HINT),)
