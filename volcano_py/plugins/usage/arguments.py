"""The arguments of usage.

    usage.weight: 5          cpu.weight: 1          memory.weight: 1
    thresholds: {cpu: 80, mem: 80}                       # whole percents
    estimator: {request_ratio: 0.7, burst_ratio: 0, risk_threshold: 0.6, risk_factor: 1.2, be_cpu: 250m, be_mem: 200Mi}

A plain number is in thousandths of a core for ``be_cpu`` and in MiB for ``be_mem``. For a value out of range the
default is used.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from volcano_py.api.quantity import QuantityError, parse_quantity
from volcano_py.conf.arguments import Warn, get_float, get_int, get_natural
from volcano_py.plugins.usage.estimates import MIB, Estimator

_THRESHOLDS: Final = {"cpu", "mem"}
_ESTIMATOR: Final = {"request_ratio", "burst_ratio", "risk_threshold", "risk_factor", "be_cpu", "be_mem"}


@dataclass(frozen=True, slots=True)
class UsageArgs:
    """Weights, thresholds in percent, and the estimator."""

    weight: int = 5
    weights: tuple[int, int] = (1, 1)  # of cpu and memory
    thresholds: tuple[float, float] = (80.0, 80.0)
    estimator: Estimator = field(default_factory=Estimator)


def read(arguments: Mapping[str, Any], warn: Warn) -> UsageArgs:
    """Read the arguments; an invalid value causes a warning, and its default is used."""
    default = UsageArgs()
    thresholds, warn_of_threshold = _section(arguments, "thresholds", _THRESHOLDS, warn)
    return UsageArgs(
        weight=get_natural(arguments, "usage.weight", default.weight, warn),
        weights=(
            get_natural(arguments, "cpu.weight", default.weights[0], warn),
            get_natural(arguments, "memory.weight", default.weights[1], warn),
        ),
        thresholds=(
            _threshold(thresholds, "cpu", warn_of_threshold),
            _threshold(thresholds, "mem", warn_of_threshold),
        ),
        estimator=_estimator(*_section(arguments, "estimator", _ESTIMATOR, warn)),
    )


def _estimator(said: Mapping[str, Any], warn: Warn) -> Estimator:
    found = Estimator()

    def ratio(key: str, kept: float) -> float:
        return _bounded(key, get_float(said, key, kept, warn), kept, 1, warn)

    factor = get_float(said, "risk_factor", found.risk_factor, warn)
    if factor < 1:
        warn(f"argument risk_factor is {factor:g}, which is below 1; the default {found.risk_factor:g} is used")
        factor = found.risk_factor
    cpu, memory = found.best_effort
    return replace(
        found,
        request_ratio=ratio("request_ratio", found.request_ratio),
        burst_ratio=ratio("burst_ratio", found.burst_ratio),
        risk_threshold=ratio("risk_threshold", found.risk_threshold),
        risk_factor=factor,
        best_effort=(_amount(said, "be_cpu", cpu, 1.0, 1000, warn), _amount(said, "be_mem", memory, MIB, 1, warn)),
    )


def _section(arguments: Mapping[str, Any], key: str, known: set[str], warn: Warn) -> tuple[Mapping[str, Any], Warn]:
    """Return an argument that is a mapping, and what takes messages about its entries."""

    def warn_of_entry(text: str) -> None:
        warn(f"argument {key}: {text.removeprefix('argument ')}")

    said = arguments.get(key)
    if said is None:
        return {}, warn_of_entry
    if not isinstance(said, Mapping):
        warn(f"argument {key} is {said!r}, which is not a mapping; the defaults are used")
        return {}, warn_of_entry
    for name in sorted(said.keys() - known):
        warn(f'argument {key} has no "{name}": it is ignored; there are: {", ".join(sorted(known))}')
    return said, warn_of_entry


def _threshold(said: Mapping[str, Any], key: str, warn: Warn) -> float:
    return _bounded(key, get_int(said, key, 80, warn), 80, 100, warn)


def _bounded(key: str, value: float, default: float, most: float, warn: Warn) -> float:
    if 0 <= value <= most:
        return float(value)
    warn(f"argument {key} is {value:g}, which is not between 0 and {most:g}; the default {default:g} is used")
    return default


def _amount(said: Mapping[str, Any], key: str, default: float, unit: float, per_unit: int, warn: Warn) -> float:
    """Return an amount: a plain number is multiplied by ``unit``, a quantity by ``per_unit``."""
    value = said.get(key)
    if value is None:
        return default
    try:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise QuantityError(f"{value!r} is neither a whole number nor a quantity")
        if isinstance(value, int) and abs(value) > sys.maxsize:
            raise QuantityError("it is not an integer of 64 bits")
        amount = value * unit if isinstance(value, int) else float(parse_quantity(value) * per_unit)
        if amount < 0:
            raise QuantityError(f"{value!r} is negative")
    except QuantityError as error:
        warn(f"argument {key}: {error}; the default is used")
        return default
    return amount
