"""Resource lists: amounts for which it matters whether a resource is named at all.

Users write such lists: a queue's capability, deserved amounts and guarantee, and the minResources of a gang. In them, a
resource that is not named differs from one with the amount 0: it counts as zero or as unlimited, depending on the
question (`Missing`). cpu and memory are always present and count as 0 if they were not written. ``pods`` is a scalar
like any other, but rules about requests ignore it, because every pod requests one.

Comparisons allow EPSILON, as everywhere (`model.resources`). Where Volcano compares exactly, the docstring says so.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import numpy as np

from volcano_py.api import keys
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.resources import CPU_ROW, EPSILON, MEMORY_ROW, ResourceRegistry

UNLIMITED: Final = sys.float_info.max
"""The amount of cpu or memory that means no limit."""

UNKNOWN_DIFFERENCE: Final = -1.0
"""The value that `ResourceList.difference` gives for a scalar that is unlimited on one side."""

_MAX_INT: Final = float(2**63 - 1)
_NOT_COMPARED: Final = frozenset({keys.PODS})  # every pod requests one, so rules about requests ignore it


class Missing(Enum):
    """How a scalar counts on a side that does not name it."""

    ZERO = "zero"
    UNLIMITED = "infinity"


@dataclass(frozen=True, slots=True)
class ResourceList:
    """Amounts by resource, immutable: cpu in thousandths, memory in bytes, pods in pods, others in thousandths."""

    cpu: float = 0.0
    memory: float = 0.0
    scalars: Mapping[str, float] = field(default_factory=dict)  # all that are named, including those with amount 0

    @classmethod
    def of(cls, amounts: Mapping[str, float]) -> "ResourceList":
        """Return the list of these amounts by name, as `model.resources.amounts_of` makes them."""
        scalars = {name: amount for name, amount in amounts.items() if name not in (keys.CPU, keys.MEMORY)}
        return cls(amounts.get(keys.CPU, 0.0), amounts.get(keys.MEMORY, 0.0), scalars)

    @classmethod
    def from_vector(cls, registry: ResourceRegistry, vector: Floats, named: Bools | None = None) -> "ResourceList":
        """Return the list of a vector in row order; ``named`` says which rows are in it (None: all)."""
        scalars = {
            name: float(vector[row])
            for row, name in enumerate(registry.names[: len(vector)])
            if row not in (CPU_ROW, MEMORY_ROW) and (named is None or named[row])
        }
        return cls(float(vector[CPU_ROW]), float(vector[MEMORY_ROW]), scalars)

    def vector(self, registry: ResourceRegistry, missing: float = 0.0) -> Floats:
        """Return the amounts in row order, shape (n_resources,), with ``missing`` for scalars that are not named.

        A scalar that the registry does not know is left out: no node has it and no task requests it.
        """
        vector = np.full(len(registry), missing)
        vector[CPU_ROW], vector[MEMORY_ROW] = self.cpu, self.memory
        for name, amount in self.scalars.items():
            row = registry.find(name)
            if row is not None:
                vector[row] = amount
        return vector

    def named(self, registry: ResourceRegistry) -> Bools:
        """Say for each row of the registry whether the list names it, shape (n_resources,); cpu and memory always."""
        named = np.array([name in self.scalars for name in registry.names], dtype=bool)
        named[[CPU_ROW, MEMORY_ROW]] = True
        return named

    # Amounts

    def get(self, name: str) -> float:
        """Return an amount, 0 for a resource that is not named."""
        if name == keys.CPU:
            return self.cpu
        return self.memory if name == keys.MEMORY else self.scalars.get(name, 0.0)

    def names(self) -> tuple[str, ...]:
        """Return the resources with an amount above 0, pods included."""
        return tuple(name for name, amount in self._items() if amount >= EPSILON)

    def is_zero(self, name: str) -> bool:
        """Say whether the amount of a resource is 0."""
        return self.get(name) < EPSILON

    def is_empty(self) -> bool:
        """Say whether all amounts are 0; pods do not count."""
        return all(name in _NOT_COMPARED or amount < EPSILON for name, amount in self._items())

    def common(self, other: "ResourceList") -> tuple[str, ...]:
        """Return the resources of which both lists have more than 0, pods included."""
        return tuple(name for name in self.names() if not other.is_zero(name))

    def common_asked(self, other: "ResourceList") -> tuple[str, ...]:
        """Return the resources other than pods of which both lists have more than 0."""
        return tuple(name for name in self.common(other) if name not in _NOT_COMPARED)

    # Arithmetic

    def __add__(self, other: "ResourceList") -> "ResourceList":
        """Return the sum; it names every resource that either list names."""
        names = dict.fromkeys((*self.scalars, *other.scalars))
        scalars = {name: self.get(name) + other.get(name) for name in names}
        return ResourceList(self.cpu + other.cpu, self.memory + other.memory, scalars)

    def __sub__(self, other: "ResourceList") -> "ResourceList":
        """Return the difference, which may be negative; `exceeding` stops at 0.

        If this list has no scalars, neither has the difference (Volcano: sub).
        """
        names = dict.fromkeys((*self.scalars, *other.scalars)) if self.scalars else {}
        scalars = {name: self.get(name) - other.get(name) for name in names}
        return ResourceList(self.cpu - other.cpu, self.memory - other.memory, scalars)

    def __mul__(self, factor: float) -> "ResourceList":
        """Return every amount times a factor."""
        scalars = {name: amount * factor for name, amount in self.scalars.items()}
        return ResourceList(self.cpu * factor, self.memory * factor, scalars)

    def with_scalar(self, name: str, more: float) -> "ResourceList":
        """Return the list with ``more`` added to one scalar."""
        return ResourceList(self.cpu, self.memory, {**self.scalars, name: self.get(name) + more})

    def maximum(self, other: "ResourceList") -> "ResourceList":
        """Return the greater amount of each resource; a scalar that only one side names keeps its amount."""
        scalars = {**self.scalars}
        for name, amount in other.scalars.items():
            scalars[name] = max(amount, scalars.get(name, amount))
        return ResourceList(max(self.cpu, other.cpu), max(self.memory, other.memory), scalars)

    def minimum(self, other: "ResourceList", missing: Missing) -> "ResourceList":
        """Return this list limited to the other one; ``missing`` is the limit of a scalar the other does not name."""
        scalars = {
            name: amount if self._free(other, name, missing) else min(amount, other.get(name))
            for name, amount in self.scalars.items()
        }
        return ResourceList(min(self.cpu, other.cpu), min(self.memory, other.memory), scalars)

    def difference(self, other: "ResourceList", missing: Missing) -> tuple["ResourceList", "ResourceList"]:
        """Return how much more this list has than the other, and how much less.

        A scalar appears in only one of the two: in the first if this list has more of it, else in the second. If
        ``missing`` is UNLIMITED, a scalar that one side does not name is UNKNOWN_DIFFERENCE in that side's result.
        """
        more: dict[str, float] = {}
        less: dict[str, float] = {}
        for name in dict.fromkeys((*self.scalars, *other.scalars)):
            if missing is Missing.UNLIMITED and name not in self.scalars:
                more[name] = UNKNOWN_DIFFERENCE
            elif missing is Missing.UNLIMITED and name not in other.scalars:
                less[name] = UNKNOWN_DIFFERENCE
            elif self.get(name) > other.get(name):
                more[name] = self.get(name) - other.get(name)
            else:
                less[name] = other.get(name) - self.get(name)
        cpu, memory = self.cpu - other.cpu, self.memory - other.memory
        return ResourceList(max(cpu, 0.0), max(memory, 0.0), more), ResourceList(
            max(-cpu, 0.0), max(-memory, 0.0), less
        )

    def exceeding(self, other: "ResourceList") -> "ResourceList":
        """Return the amounts by which this list exceeds the other (Volcano: ExceededPart), scalars only if above 0."""
        return self.difference(other, Missing.ZERO)[0]

    # Comparisons of whole lists

    def less_than(self, other: "ResourceList", missing: Missing) -> bool:
        """Say whether every resource named here is strictly less.

        A scalar that only the other side names does not matter. But if ``missing`` is UNLIMITED, the answer is no.
        """
        return self._lower_everywhere(other, missing, tolerance=None)

    def at_most(self, other: "ResourceList", missing: Missing) -> bool:
        """Say whether every resource named here is at most that of the other; see `less_than`."""
        return self._lower_everywhere(other, missing, tolerance=EPSILON)

    def less_in_some(self, other: "ResourceList", missing: Missing) -> bool:
        """Say whether some resource is strictly less.

        A scalar that only the other side names counts as less, even if it is 0 there (Volcano). But if ``missing`` is
        UNLIMITED, it does not.
        """
        return self._lower_somewhere(other, missing, tolerance=None)

    def at_most_in_some(self, other: "ResourceList", missing: Missing) -> bool:
        """Say whether some resource is at most that of the other; see `less_in_some`."""
        return self._lower_somewhere(other, missing, tolerance=EPSILON)

    def equals(self, other: "ResourceList") -> bool:
        """Say whether every amount is the same; what is not named counts as 0."""
        names = dict.fromkeys((keys.CPU, keys.MEMORY, *self.scalars, *other.scalars))
        return all(abs(self.get(name) - other.get(name)) < EPSILON for name in names)

    def over(self, other: "ResourceList", missing: Missing) -> tuple[str, ...]:
        """Return the resources of this list in which it exceeds the other."""
        return tuple(
            name
            for name, amount in self._items()
            if not self._free(other, name, missing) and not _lower(amount, other.get(name), EPSILON)
        )

    # Comparisons in the requested resources: those of which ``asked`` has more than 0, except pods

    def over_asked(self, other: "ResourceList", asked: "ResourceList") -> tuple[str, ...]:
        """Return the requested resources in which this list exceeds the other, compared exactly."""
        return tuple(name for name in _asked(asked) if self.get(name) > other.get(name))

    def over_asked_where_given(self, other: "ResourceList", asked: "ResourceList") -> tuple[str, ...]:
        """Return `over_asked` without what the other list does not give: cpu or memory of 0, scalars not named."""
        return tuple(name for name in self.over_asked(other, asked) if other._gives(name))

    def within_asked(self, other: "ResourceList", asked: "ResourceList") -> tuple[str, ...]:
        """Return the requested resources of which this list has at most the other's amount."""
        return tuple(name for name in _asked(asked) if _lower(self.get(name), other.get(name), EPSILON))

    def within_asked_nonzero(self, other: "ResourceList", asked: "ResourceList") -> tuple[str, ...]:
        """Return `within_asked` without resources that are 0 in both lists."""
        within = self.within_asked(other, asked)
        return tuple(name for name in within if not (self.is_zero(name) and other.is_zero(name)))

    def __str__(self) -> str:
        """Return the amounts as Volcano's logs and events write them, scalars by name."""
        parts = [f"{keys.CPU} {_number(self.cpu)}", f"{keys.MEMORY} {_number(self.memory)}"]
        for name, amount in sorted(self.scalars.items()):
            parts.append(f"{name} {'maxInt' if amount >= _MAX_INT else f'{amount:.2f}'}")
        return ", ".join(parts)

    # Parts

    def _items(self) -> Iterator[tuple[str, float]]:
        yield keys.CPU, self.cpu
        yield keys.MEMORY, self.memory
        yield from self.scalars.items()

    def _gives(self, name: str) -> bool:
        return not self.is_zero(name) if name in (keys.CPU, keys.MEMORY) else name in self.scalars

    @staticmethod
    def _free(other: "ResourceList", name: str, missing: Missing) -> bool:
        """Say whether the other side sets no limit on a resource of this side."""
        return missing is Missing.UNLIMITED and name not in (keys.CPU, keys.MEMORY) and name not in other.scalars

    def _lower_everywhere(self, other: "ResourceList", missing: Missing, tolerance: float | None) -> bool:
        if missing is Missing.UNLIMITED and not other.scalars.keys() <= self.scalars.keys():
            return False
        return all(
            self._free(other, name, missing) or _lower(amount, other.get(name), tolerance)
            for name, amount in self._items()
        )

    def _lower_somewhere(self, other: "ResourceList", missing: Missing, tolerance: float | None) -> bool:
        if missing is Missing.ZERO and not other.scalars.keys() <= self.scalars.keys():
            return True
        return any(
            self._free(other, name, missing) or _lower(amount, other.get(name), tolerance)
            for name, amount in self._items()
        )


NOTHING: Final = ResourceList()
"""The empty list."""


def _lower(left: float, right: float, tolerance: float | None) -> bool:
    return left < right or (tolerance is not None and abs(left - right) < tolerance)


def _asked(request: ResourceList) -> Iterator[str]:
    return (name for name, amount in request._items() if amount > 0 and name not in _NOT_COMPARED)


def _number(amount: float) -> str:
    return "maxFloat" if amount >= UNLIMITED else f"{amount:.2f}"
