"""The arguments of the plugin, and the strategy in a pod's annotations.

    resourceStrategyFitWeight: 10            # 0 disables the strategies
    resources:                               # default: cpu and memory with LeastAllocated and weight 1
      nvidia.com/gpu: {type: MostAllocated, weight: 2}
      example.com/*: {type: LeastAllocated, weight: 1}
    sra: {enable: true, resources: "nvidia.com/t4, nvidia.com/a10", weight: 5, resourceWeight: {nvidia.com/t4: 2}}
    proportional: {enable: true, resources: nvidia.com/gpu, resourceProportion: {nvidia.com/gpu.cpu: 4}}

A value of a wrong type ends Volcano's process; here the configuration is refused with the key. Unknown keys cause a
warning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from volcano_py.api import keys
from volcano_py.conf.arguments import Warn

LEAST: Final = "LeastAllocated"
MOST: Final = "MostAllocated"
_WEIGHT: Final = "resourceStrategyFitWeight"
_DEFAULT_WEIGHT: Final = 10
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]  # as in Go; a longer one may be no float


class Entry(NamedTuple):
    """The strategy and weight of one resource."""

    kind: str = LEAST
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Strategy:
    """The strategies of all resources; names may end in ``*``."""

    weight: int = _DEFAULT_WEIGHT
    resources: Mapping[str, Entry] = field(default_factory=lambda: {keys.CPU: Entry(), keys.MEMORY: Entry()})

    def find(self, resource: str) -> Entry | None:
        """Return the entry of a resource: that of its name, else that of the longest matching prefix with ``*``."""
        exact = self.resources.get(resource)
        if exact is not None:
            return exact
        prefixes = (name for name in self.resources if name[1:].endswith("*") and resource.startswith(name[:-1]))
        longest = max(prefixes, key=len, default=None)
        return None if longest is None else self.resources[longest]


@dataclass(frozen=True, slots=True)
class Scarce:
    """Scarce resources: other pods avoid the nodes that have them."""

    weight: int = 0  # 0 disables this score
    resources: Mapping[str, int] = field(default_factory=dict)  # weight of each


class Share(NamedTuple):
    """The cpu and memory that must remain on a node for every idle unit of a resource."""

    cpu: float = 1.0  # cores
    memory: float = 1.0  # 10^9 bytes


@dataclass(frozen=True, slots=True)
class ResourceStrategyFitArgs:
    """All three parts of the plugin."""

    strategy: Strategy = field(default_factory=Strategy)
    scarce: Scarce = field(default_factory=Scarce)
    shares: Mapping[str, Share] = field(default_factory=dict)


class _Entry(msgspec.Struct):
    type: str = ""
    weight: _Int64 = 0


class _Scarce(msgspec.Struct, rename="camel"):
    enable: bool = False
    resources: str = ""
    weight: _Int64 = 0
    resource_weight: dict[str, _Int64] = {}


class _Proportional(msgspec.Struct, rename="camel"):
    enable: bool = False
    resources: str = ""
    resource_proportion: dict[str, float] = {}


def read(arguments: Mapping[str, Any], warn: Warn) -> ResourceStrategyFitArgs:
    """Read the arguments; raise ValueError naming the key of a value of a wrong type."""
    for key, known in (("sra", _Scarce), ("proportional", _Proportional)):
        said = arguments.get(key)
        for name in sorted(said.keys() - set(known.__struct_encode_fields__)) if isinstance(said, Mapping) else ():
            warn(f'argument {key} has no "{name}": it is ignored')
    weight = _convert(arguments, _WEIGHT, _Int64, None)
    entries = _convert(arguments, "resources", dict[str, _Entry], None) or {}
    resources = {}
    for name, entry in entries.items():
        if "*" in name[:-1] or name == "*":
            warn(f"resources: {name!r} is ignored: a name may contain only one *, at the end of a prefix")
            continue
        if entry.type not in (LEAST, MOST):
            warn(f"resources[{name}]: unknown type {entry.type!r}; {LEAST} is used")
        if entry.weight < 0:
            warn(f"resources[{name}]: the weight {entry.weight} is below 0; 1 is used")
        resources[name] = Entry(entry.type if entry.type == MOST else LEAST, entry.weight if entry.weight > 0 else 1)
    if weight is not None and weight < 0:
        warn(f"argument {_WEIGHT} is {weight}, which is below 0; the default {_DEFAULT_WEIGHT} is used")
    strategy = Strategy(_DEFAULT_WEIGHT if weight is None or weight < 0 else weight)
    if entries:
        strategy = Strategy(strategy.weight, resources)
    return ResourceStrategyFitArgs(strategy, _scarce(arguments, warn), _shares(arguments, warn))


def _scarce(arguments: Mapping[str, Any], warn: Warn) -> Scarce:
    said = _convert(arguments, "sra", _Scarce, None)
    if said is None or not said.enable:
        return Scarce()
    if said.weight < 0:
        warn(f"argument sra: the weight {said.weight} is below 0; 0 is used")
    weights = {name: said.resource_weight.get(name, 1) for name in _names(said.resources)}
    for name, weight in weights.items():
        if weight < 0:
            warn(f"argument sra: the weight {weight} of {name} is below 0; 1 is used")
    return Scarce(max(said.weight, 0), {name: weight if weight >= 0 else 1 for name, weight in weights.items()})


def _shares(arguments: Mapping[str, Any], warn: Warn) -> dict[str, Share]:
    said = _convert(arguments, "proportional", _Proportional, None)
    if said is None or not said.enable:
        return {}

    def rate(key: str) -> float:
        found = said.resource_proportion.get(key, 1.0)
        if found < 0:
            warn(f"argument proportional: {key} is {found:g}, which is below 0; 1 is used")
        return found if found >= 0 else 1.0

    return {name: Share(rate(f"{name}.cpu"), rate(f"{name}.memory")) for name in _names(said.resources)}


def of_pod(kind: str, weights: str, weight: int) -> Strategy | None:
    """Return the strategy in a pod's annotations, None if the weights are not a JSON object of integers by resource.

    An unknown strategy scores 0 and its weight still counts; a weight below 0 counts as 0.
    """
    try:
        found = msgspec.json.decode(weights, type=dict[str, _Int64])
    except msgspec.MsgspecError:
        return None
    return Strategy(weight, {name: Entry(kind, max(number, 0)) for name, number in found.items()})


def _names(text: str) -> list[str]:
    """Return the names in a comma-separated list, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _convert(arguments: Mapping[str, Any], key: str, kind: Any, default: Any) -> Any:
    if arguments.get(key) is None:
        return default
    try:
        return msgspec.convert(arguments[key], kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"argument {key}: {error}") from None
