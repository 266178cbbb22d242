"""Amounts of resources as mappings, and as short texts."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from volcano_py.api.quantity import QuantityError, parse_quantity

Amounts = dict[str, Fraction]

_NOT_ROOM: Final = ("requests.", "limits.", "count/")
_BYTES: Final = ("memory", "ephemeral-storage", "storage")
_UNITS: Final = (("Ti", 1024**4), ("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024))


def read(given: Mapping[str, Any] | None) -> Amounts:
    """Read a resource list; keys of quotas and what cannot be read are left out."""
    found = {}
    for name, text in (given or {}).items():
        if not name.startswith(_NOT_ROOM):
            try:
                found[name] = parse_quantity(text)
            except QuantityError:
                continue
    return found


def total(lists: Iterable[Amounts]) -> Amounts:
    """Return the sums. The pods of a gang are alike: a list that is there many times is added once."""
    times: dict[int, int] = {}
    different: dict[int, Amounts] = {}
    for one in lists:
        times[id(one)] = times.get(id(one), 0) + 1
        different[id(one)] = one
    found: Amounts = {}
    for key, one in different.items():
        for name, amount in one.items():
            found[name] = found.get(name, Fraction()) + amount * times[key]
    return found


def requests_of(pod: Mapping[str, Any]) -> Amounts:
    """Return what a pod or a template requests: containers and sidecars together, init containers alone."""
    spec = pod.get("spec") or {}
    initial = spec.get("initContainers") or ()
    own = [*(spec.get("containers") or ()), *(one for one in initial if one.get("restartPolicy") == "Always")]
    together = total(_requests(one) for one in own)
    for one in initial:
        for name, amount in _requests(one).items():
            together[name] = max(together.get(name, Fraction()), amount)
    return total([together, read(spec.get("overhead")), {"pods": Fraction(1)}])


class Requests:
    """What pods request; pods that are alike share one answer."""

    def __init__(self) -> None:
        self._known: dict[str, Amounts] = {}

    def of(self, pod: Mapping[str, Any]) -> Amounts:
        """Return what a pod requests, see `requests_of`."""
        spec = pod.get("spec") or {}
        containers = [*(spec.get("containers") or ()), None, *(spec.get("initContainers") or ())]
        shape = [one and (one.get("resources"), one.get("restartPolicy")) for one in containers]
        key = repr((shape, spec.get("overhead")))
        if key not in self._known:
            self._known[key] = requests_of(pod)
        return self._known[key]


def _requests(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    return {**read(resources.get("limits")), **read(resources.get("requests"))}


def shown(name: str, amount: Fraction) -> str:
    """Return an amount as text: bytes in the largest unit that fits, the rest with at most three digits."""
    if name in _BYTES or name.startswith("hugepages-"):
        for unit, size in _UNITS:
            if abs(amount) >= size:
                return f"{_number(amount / size)}{unit}"
    return _number(amount)


def _number(amount: Fraction) -> str:
    return f"{float(amount):.3f}".rstrip("0").rstrip(".")


def listed(amounts: Mapping[str, Fraction], names: Iterable[str] = ()) -> str:
    """Return amounts in one line."""
    wanted = list(names) or list(amounts)
    return ", ".join(f"{name} {shown(name, amounts[name])}" for name in wanted if name in amounts) or "nothing"
