"""Resources as numbers: the dimensions, the conversion of quantities to amounts, and the tolerance of comparisons.

Amounts are float64 and always whole: cpu in thousandths of a core, memory in bytes, ``pods`` in pods, every other
resource in thousandths. Whole numbers below 2^53 add and subtract without error, so undo is exact.

Volcano compares with an absolute tolerance of 0.1 (its ``minResource``); so does everything here.
"""

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.api import keys
from volcano_py.api.quantity import QuantityError, WireQuantity, milli, parse_quantity, whole
from volcano_py.model.arrays import Bools, Floats

EPSILON: Final = 0.1
"""Two amounts closer than this count as equal (Volcano: minResource)."""

_BINARY: Final = ((6, "Ei"), (5, "Pi"), (4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki"))
_BYTES: Final = (keys.MEMORY, keys.EPHEMERAL_STORAGE)
_MOST: Final = {keys.CPU: 2.0**40, keys.MEMORY: 2.0**50}  # a billion cores, a pebibyte
_MOST_BYTES: Final = 2.0**60  # thousandths: a pebibyte
_MOST_DEVICES: Final = 2.0**53  # thousandths: 10^13

_LONGEST_NAME: Final = 253 + 1 + 63  # a domain, "/" and a name (Kubernetes: qualified names)

CPU_ROW: Final = 0
MEMORY_ROW: Final = 1
PODS_ROW: Final = 2
_STEP: Final = 16
_FEW_NODES: Final = 64
MOST_RESOURCES: Final = 256
"""How many resources get a row of their own although no node and no queue offers them, but pods ask for them.

Users make up as many names as they like, and each row costs memory and time in every cycle.
"""
NOT_OFFERED: Final = "volcano.sh/~not-offered"
"""The row of all other such resources together; no API server accepts this name, so no node offers it."""
_FIRST: Final = (keys.CPU, keys.MEMORY, keys.PODS)


class ResourceRegistry:
    """All resources seen so far; each keeps its row number for good."""

    __slots__ = ("_asked", "_rows")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._rows: dict[str, int] = {name: row for row, name in enumerate(_FIRST)}
        self._asked: set[str] = set()  # those that nobody has offered
        for name in names:
            self.row(name)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in row order: cpu, memory, pods, then others as they were first seen."""
        return tuple(self._rows)

    def row(self, name: str) -> int:
        """Return the row of a resource that somebody offers; a new name gets the next row."""
        self._asked.discard(name)
        return self._rows.setdefault(name, len(self._rows))

    def ask(self, names: Iterable[str]) -> tuple[str, ...]:
        """Give resources that somebody asks for their rows; return those that get none (`MOST_RESOURCES`).

        Those who ask for too many get none of the new ones, so that one of them does not use up the rows of others.
        """
        new = [name for name in names if name not in self._rows]
        if len(self._asked) + len(new) > MOST_RESOURCES:
            self.row(NOT_OFFERED)
            return tuple(new)
        for name in new:
            self._rows[name] = len(self._rows)
        self._asked.update(new)
        return ()

    def find(self, name: str) -> int | None:
        """Return the row of a resource, or None if it has not been seen."""
        return self._rows.get(name)

    def vector(self, amounts: Mapping[str, float], left_out: Collection[str] = ()) -> Floats:
        """Return amounts as a vector in row order, shape (n_resources,); names that were never seen are left out.

        Those that `ask` has left out count together.
        """
        vector = np.zeros(len(self._rows))
        for name, amount in amounts.items():
            row = self._rows.get(name)
            if row is not None:
                vector[row] = amount
        if left_out:
            vector[self._rows[NOT_OFFERED]] = sum(amounts[name] for name in left_out)
        return vector

    def frozen(self) -> "ResourceRegistry":
        """Return a copy; resources registered later do not appear in it."""
        return ResourceRegistry(self._rows)


def is_scalar(name: str) -> bool:
    """Say whether a resource other than cpu, memory and pods is counted at all.

    Ephemeral-storage, extended resources, huge pages, names under kubernetes.io/ and attachable volumes are counted.
    Quota names such as ``requests.nvidia.com/gpu`` and ``count/pods`` are not (Volcano: NewResource).
    """
    if name == keys.EPHEMERAL_STORAGE or name.startswith((keys.HUGEPAGES_PREFIX, keys.ATTACHABLE_VOLUMES_PREFIX)):
        return True
    return "/" in name and not name.startswith(("count/", "requests."))


def amount_of(name: str, value: Fraction) -> float | None:
    """Return the amount of a resource in its own unit, or None for a resource that is not counted.

    No node and no pod can have a name that is longer than the API server admits. The minimum of a PodGroup can, up to
    the size of an object, and the names of amounts are kept.
    """
    return _amount_of(name, value) if len(name) <= _LONGEST_NAME else None


@lru_cache(maxsize=4096)
def _amount_of(name: str, value: Fraction) -> float | None:
    if name == keys.CPU:
        return float(milli(value))
    if name in (keys.MEMORY, keys.PODS):
        return float(whole(value))
    return float(milli(value)) if is_scalar(name) else None


def bounded(name: str, amount: float) -> float:
    """Return what a pod asks for of a resource, but not much more than any node could have.

    Users may put pods on a node by its name, whatever they ask for. With a number near 2^63, sums would lose the small
    numbers in them, also after the pod is gone. The bounds leave room for sums of usual amounts, which are multiples of
    a whole device or a kibibyte.
    """
    if name in _MOST:
        return min(amount, _MOST[name])
    in_bytes = name == keys.EPHEMERAL_STORAGE or name.startswith(keys.HUGEPAGES_PREFIX)
    return min(amount, _MOST_BYTES if in_bytes else _MOST_DEVICES)


def amounts_of(quantities: Mapping[str, WireQuantity], where: str) -> dict[str, float]:
    """Return the amounts of a resource list; raise QuantityError that names the field if a quantity cannot be read."""
    amounts: dict[str, float] = {}
    for name, written in quantities.items():
        amount = amount_of(name, read_quantity(written, f"{where}[{name}]"))
        if amount is not None:
            amounts[name] = amount
    return amounts


def read_quantity(written: WireQuantity, where: str) -> Fraction:
    """Return the value of a quantity; raise QuantityError naming its field ``where``."""
    try:
        return parse_quantity(written)
    except QuantityError as error:
        raise QuantityError(f"{where}: {error}") from None


class Amounts:
    """Amounts (n_rows,) that are often combined with the columns of nodes.

    For few nodes, numpy adds two arrays of equal shape in a third of the time that broadcasting a single column takes.
    So one full array is kept for each number of nodes that `even` returns.
    """

    __slots__ = ("_column", "_wide")

    def __init__(self, amounts: Floats) -> None:
        self._column = amounts[:, None]
        self._wide: dict[int, Floats] = {}

    def beside(self, n_nodes: int) -> Floats:
        """Return the amounts as (n_rows, n_nodes), or as (n_rows, 1), which numpy broadcasts to the same."""
        try:
            return self._wide[n_nodes]
        except KeyError:
            if n_nodes > _FEW_NODES or n_nodes % _STEP:
                return self._column
            found = self._wide[n_nodes] = self._column.repeat(n_nodes, axis=1)
            return found


def even(n_nodes: int) -> int:
    """Round a number of nodes up to the next one for which `Amounts` may keep a full array."""
    return -(-n_nodes // _STEP) * _STEP


class FitTest:
    """Compares one request with the resources of nodes: cpu, memory and all requested resources, within EPSILON.

    Volcano's LessEqual compares every dimension of its left side, and always cpu and memory. So a node with negative
    idle cpu takes no pod at all, while negative idle GPUs matter only to pods that request GPUs.
    """

    __slots__ = ("_floor", "_request", "_rows")

    def __init__(self, request: Floats) -> None:
        self._request = request
        relevant = request > 0
        relevant[[CPU_ROW, MEMORY_ROW]] = True
        rows = np.flatnonzero(relevant)
        first = slice(0, len(rows))  # most requests are the first rows of the registry; a slice copies nothing
        self._rows: slice | NDArray[np.intp] = first if rows[-1] == len(rows) - 1 else rows
        # Above 2^50, float64 has no tenths: request - EPSILON is the request itself. Equal amounts must still fit.
        self._floor = Amounts(np.minimum(request[rows] - EPSILON, np.nextafter(request[rows], -np.inf)))

    @property
    def rows(self) -> "NDArray[np.intp]":
        """The rows of the compared resources."""
        return np.arange(self._rows.stop) if isinstance(self._rows, slice) else self._rows

    def fits(self, available: Floats) -> Bools:
        """Say for each node whether the request is at most available (n_resources, n_nodes)."""
        return np.asarray(np.logical_and.reduce(self._floor.beside(available.shape[1]) < available[self._rows], axis=0))

    def lacks(self, available: Floats) -> Bools:
        """Say for each node whether it has too little of some resource, the opposite of `fits`."""
        found = self._floor.beside(available.shape[1]) >= available[self._rows]
        lacking: Bools = found[0]
        for row in range(1, len(found)):  # for few rows a loop is faster than a numpy reduction
            lacking |= found[row]
        return lacking

    def most(self, available: Floats) -> Floats:
        """Return for each node how many such requests fit at most, one after another; available as in `fits`."""
        asked = np.flatnonzero(self._request > 0)
        times = np.floor((available[asked] + EPSILON) / self._request[asked, None])
        return np.asarray(np.maximum(times.min(axis=0, initial=np.inf), 0.0))

    def first_lacking(self, available: Floats) -> NDArray[np.intp]:
        """Return for each node the first resource row of which it has too little, -1 where everything fits."""
        lacking = self._floor.beside(available.shape[1]) >= available[self._rows]
        first: NDArray[np.intp] = np.full(available.shape[1], -1, dtype=np.intp)
        for row, lack in zip(self.rows[::-1].tolist(), lacking[::-1], strict=True):  # the first row overwrites others
            first[lack] = row
        return first


def is_empty(request: Floats) -> bool:
    """Say whether a request asks for nothing besides pods, so that the task is best-effort."""
    return not (np.delete(request, PODS_ROW) >= EPSILON).any()


def format_amount(name: str, amount: float) -> str:
    """Return an amount in the usual notation: cores, binary memory units, plain counts."""
    if name == keys.CPU:
        return _plain(amount / 1000)
    if name == keys.MEMORY or name.startswith(keys.HUGEPAGES_PREFIX) or name == keys.EPHEMERAL_STORAGE:
        size = amount if name == keys.MEMORY else amount / 1000
        for power, suffix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
            if abs(size) >= 1024**power:
                return f"{size / 1024**power:.4g}{suffix}"
        return f"{size:g}"
    return _plain(amount if name == keys.PODS else amount / 1000)


def _plain(number: float) -> str:
    """Return a number with six digits if it has a fraction, and never with an exponent if it is large."""
    return f"{number:g}" if abs(number) < 1e6 else f"{number:.0f}"


def quantity_text(name: str, amount: int) -> str:
    """Return the exact wire quantity of an amount, the inverse of `amount_of`."""
    if name == keys.PODS:
        return str(amount)
    units, rest = (amount, 0) if name == keys.MEMORY else divmod(amount, 1000)
    if rest:
        return f"{amount}m"
    if name in _BYTES or name.startswith(keys.HUGEPAGES_PREFIX):
        for power, suffix in _BINARY:
            whole_part, rest = divmod(units, 1024**power)
            if whole_part and not rest:
                return f"{whole_part}{suffix}"
    return str(units)
