"""The arguments of the plugin."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.conf.arguments import Warn, get_bool, get_float, get_int, get_natural, get_resource_weights

_WEIGHT: Final = "weight"
_BINPACK: Final = "hypernode.binpack."
_ENABLE: Final = "hypernode.binpack.normal-pod.enable"
_FADING: Final = "hypernode.binpack.normal-pod.fading"
_MOST: Final = "hypernode.gradient.evict.max-hypernodes"
_MOST_DOMAINS: Final = 8

KEYS: Final = frozenset(
    {
        *(_WEIGHT, _ENABLE, _FADING, _MOST, f"{_BINPACK}cpu", f"{_BINPACK}memory"),
        *(f"{_BINPACK}resources", f"{_BINPACK}resources.*"),
    }
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The weights of the plugin and of each resource, and how it treats pods without a topology."""

    weight: int = 1
    resource_weights: Mapping[str, float] = field(default_factory=lambda: {keys.CPU: 1.0, keys.MEMORY: 1.0})
    normal_pods: bool = True
    """Whether pods without a topology are packed into the fullest domains."""
    fading: float = 0.8
    """How much a tier counts for these pods, compared with the tier below it."""
    most_domains: int = _MOST_DOMAINS
    """How many domains of one tier are tried when others are evicted for a gang."""


def parse(arguments: Mapping[str, Any], warn: Warn) -> Arguments:
    """Read the arguments; a negative number counts as the default."""
    default = Arguments()
    fading = get_float(arguments, _FADING, default.fading, warn)
    if fading < 0:
        warn(f"argument {_FADING} is {fading:g}, which is below 0; the default {default.fading:g} is used")
    most = get_int(arguments, _MOST, _MOST_DOMAINS, warn)
    if most < 1:
        warn(f"argument {_MOST} is {most}, which is below 1; the default {_MOST_DOMAINS} is used")
    return Arguments(
        weight=get_natural(arguments, _WEIGHT, 1, warn),
        resource_weights=get_resource_weights(arguments, _BINPACK, warn),
        normal_pods=get_bool(arguments, _ENABLE, True, warn),
        fading=fading if fading >= 0 else default.fading,
        most_domains=most if most > 0 else _MOST_DOMAINS,
    )
