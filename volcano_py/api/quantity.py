"""Kubernetes quantities: text to exact numbers and to the integers that the API server would compute.

The grammar is that of ``k8s.io/apimachinery/pkg/api/resource``: a decimal number and one of the suffixes
``n u m "" k M G T P E``, ``Ki Mi Gi Ti Pi Ei`` or a decimal exponent. Values finer than 10^-9 are rounded up;
reading a value as whole units or as thousandths rounds away from zero, as ``Value`` and ``MilliValue`` do.
"""

import re
from fractions import Fraction
from functools import lru_cache

_GRAMMAR = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE])([+-]?\d+)|([KMGTPE]i|[numkMGTPE])?)", re.ASCII)
_PLAIN = re.compile(r"(\d{1,15})(m|[KMGT]i|[kMGT])?", re.ASCII)
_MAX_EXPONENT = 1000  # far past what fits; keeps a hostile "1e999999999" from building a number of that size
_LONGEST = 64  # characters; what the API server writes has some 20, and what was read is kept
_LIMIT = 2**63 - 1
_NANO = 10**9
_SUFFIX: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(10 ** (3 * (power + 1))) for power, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Fraction(1024 ** (power + 1)) for power, suffix in enumerate("KMGTPE")},
}

WireQuantity = str | int | float
"""A quantity as JSON brings it: normally text, but bare numbers are allowed on input."""


class QuantityError(ValueError):
    """The text is not a Kubernetes quantity."""


@lru_cache(maxsize=65536)
def parse_quantity(text: WireQuantity) -> Fraction:
    """Return the exact value of a quantity, in units of one; raise QuantityError with the text and what is allowed."""
    written = text if isinstance(text, str) else repr(text)
    if plain := _PLAIN.fullmatch(written):
        digits, suffix = plain.groups("")
        # No such number is finer than 10^-9. Most quantities are written so, and the rest takes ten times as long.
        if suffix == "m":
            return Fraction(int(digits), 1000)
        return Fraction(min(int(digits) * _SUFFIX[suffix].numerator, _LIMIT))
    if len(written) > _LONGEST:
        raise QuantityError(
            f"{written[:20]!r} and {len(written) - 20} more characters are not a quantity: write {_LONGEST} at most"
        )
    match = _GRAMMAR.fullmatch(written)
    if match is None:
        raise QuantityError(
            f"{written!r} is not a quantity: write a number with an optional suffix "
            "(n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or exponent, such as 500m, 2Gi or 1e3"
        )
    sign, digits, has_exponent, exponent, suffix = match.groups()
    value = Fraction(digits + "0" if digits.endswith(".") else digits)
    if has_exponent:
        value *= Fraction(10) ** max(-_MAX_EXPONENT, min(_MAX_EXPONENT, int(exponent)))
    else:
        value *= _SUFFIX[suffix or ""]
    value = min(Fraction(_ceil(value * _NANO), _NANO), Fraction(_LIMIT))
    return -value if sign == "-" else value


def whole(value: Fraction) -> int:
    """Return value in units of one, rounded away from zero and kept within 64 bits."""
    return _round_away(value)


def milli(value: Fraction) -> int:
    """Return value in thousandths, rounded away from zero and kept within 64 bits."""
    return _round_away(value * 1000)


def _round_away(value: Fraction) -> int:
    magnitude = min(_ceil(abs(value)), _LIMIT)
    return magnitude if value >= 0 else -magnitude


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
