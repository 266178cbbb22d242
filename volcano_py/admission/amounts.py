"""Amounts of resources in queues: exact numbers, and the texts in which Volcano shows them."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.api.quantity import parse_quantity

Amounts = Mapping[str, Fraction]
ZERO: Final = Fraction(0)
_SUFFIXES: Final = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


def amounts(written: Mapping[str, Any]) -> Amounts:
    """Return the amounts of a resource list; what is no quantity is left out."""
    found = {name: amount(value) for name, value in written.items()}
    return {name: value for name, value in found.items() if value is not None}


def amount(written: Any) -> Fraction | None:
    """Return the exact value of a quantity, None if it is none."""
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return None
    try:
        return parse_quantity(written)
    except ValueError:  # QuantityError, and numbers of thousands of digits, which Python does not read
        return None


def total(lists: Iterable[Amounts]) -> Amounts:
    """Return the sum of resource lists."""
    found: dict[str, Fraction] = {}
    for one in lists:
        for name, value in one.items():
            found[name] = found.get(name, ZERO) + value
    return found


def exceeding(wanted: Amounts, limit: Amounts) -> list[str]:
    """Return the resources of which more is wanted than there is; what the limit does not name counts as 0."""
    return [name for name, value in wanted.items() if value > limit.get(name, ZERO)]


def shown(name: str, value: Fraction) -> str:
    """Return one amount as Volcano shows it: cpu and memory as quantities, others in thousandths."""
    if name == keys.CPU:
        return str(value.numerator) if value.denominator == 1 else f"{_whole(value * 1000)}m"
    if name == keys.MEMORY:
        size = _whole(value)
        for power, suffix in zip(range(6, 0, -1), _SUFFIXES, strict=True):
            if size and size % 1024**power == 0:
                return f"{size // 1024**power}{suffix}"
        return str(size)
    return f"{float(_unit(name, value)):.2f}"


def shown_list(found: Amounts) -> str:
    """Return a resource list as Volcano shows it: cpu in thousandths, memory in bytes, others in thousandths."""
    pieces = [f"{name} {float(_unit(name, found.get(name, ZERO))):.2f}" for name in (keys.CPU, keys.MEMORY)]
    pieces += [
        f"{name} {float(_unit(name, value)):.2f}" for name, value in sorted(found.items()) if name not in _NATIVE
    ]
    return ", ".join(pieces)


_NATIVE: Final = (keys.CPU, keys.MEMORY)


def _unit(name: str, value: Fraction) -> Fraction:
    return value if name in (keys.MEMORY, keys.PODS) else value * 1000


def _whole(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
