"""Resource lists: amounts in which it matters whether a resource is named at all.

Nodes and tasks are rows of numbers; what a queue may have (capability), should have (deserved) and keeps (guarantee),
and what a gang needs at least (minResources), are lists that people write. A resource that a list does not name is
not the same as one it gives as 0: depending on the question it counts as zero or as without limit (`Missing`). cpu and
memory are always there and count as 0 when they were not written; ``pods`` is a scalar like any other, but rules
about what somebody asks for leave it aside, since every pod asks for one.

Comparisons allow EPSILON, as everywhere (`model.resources`); where Volcano compares exactly, so does this, and says so.
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
"""The amount of cpu or memory that stands for no limit at all."""

UNKNOWN_DIFFERENCE: Final = -1.0
"""What `ResourceList.difference` gives for a scalar that is without limit on one side."""

_MAX_INT: Final = float(2**63 - 1)
_LEFT_ASIDE: Final = frozenset({keys.PODS})  # every pod asks for one: it says nothing about what somebody asks for


class Missing(Enum):
    """What a scalar counts as on a side that does not name it."""

    ZERO = "zero"
    UNLIMITED = "infinity"


@dataclass(frozen=True, slots=True)
class ResourceList:
    """Amounts by resource, never changed: cpu in thousandths, memory in bytes, pods in pods, others in thousandths."""

    cpu: float = 0.0
    memory: float = 0.0
    scalars: Mapping[str, float] = field(default_factory=dict)  # all that are named, with amounts of 0 too

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

        A scalar that the registry does not know is left out: nobody has it and nobody asks for it.
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

    # What it says

    def get(self, name: str) -> float:
        """Return an amount, 0 for a resource that is not named."""
        if name == keys.CPU:
            return self.cpu
        return self.memory if name == keys.MEMORY else self.scalars.get(name, 0.0)

    def names(self) -> tuple[str, ...]:
        """Return the resources of which there is any, pods included."""
        return tuple(name for name, amount in self._items() if amount >= EPSILON)

    def is_zero(self, name: str) -> bool:
        """Say whether there is nothing of a resource."""
        return self.get(name) < EPSILON

    def is_empty(self) -> bool:
        """Say whether there is nothing of any resource; pods do not count."""
        return all(name in _LEFT_ASIDE or amount < EPSILON for name, amount in self._items())

    def common(self, other: "ResourceList") -> tuple[str, ...]:
        """Return the resources of which both have some, pods included."""
        return tuple(name for name in self.names() if not other.is_zero(name))

    def common_asked(self, other: "ResourceList") -> tuple[str, ...]:
        """Return the resources other than pods of which both have some."""
        return tuple(name for name in self.common(other) if name not in _LEFT_ASIDE)

    # Arithmetic

    def __add__(self, other: "ResourceList") -> "ResourceList":
        """Return the sum; it names what either names."""
        names = dict.fromkeys((*self.scalars, *other.scalars))
        scalars = {name: self.get(name) + other.get(name) for name in names}
        return ResourceList(self.cpu + other.cpu, self.memory + other.memory, scalars)

    def __sub__(self, other: "ResourceList") -> "ResourceList":
        """Return what is left, below zero where more is taken than there is; see `exceeding` for a floor.

        A list without any scalar stays without, whatever is taken from it (Volcano: sub).
        """
        names = dict.fromkeys((*self.scalars, *other.scalars)) if self.scalars else {}
        scalars = {name: self.get(name) - other.get(name) for name in names}
        return ResourceList(self.cpu - other.cpu, self.memory - other.memory, scalars)

    def __mul__(self, factor: float) -> "ResourceList":
        """Return every amount times a factor."""
        scalars = {name: amount * factor for name, amount in self.scalars.items()}
        return ResourceList(self.cpu * factor, self.memory * factor, scalars)

    def with_scalar(self, name: str, more: float) -> "ResourceList":
        """Return the list with so much more of one scalar."""
        return ResourceList(self.cpu, self.memory, {**self.scalars, name: self.get(name) + more})

    def maximum(self, other: "ResourceList") -> "ResourceList":
        """Return the greater amount of each resource; a scalar that one side names counts as it stands there."""
        scalars = {**self.scalars}
        for name, amount in other.scalars.items():
            scalars[name] = max(amount, scalars.get(name, amount))
        return ResourceList(max(self.cpu, other.cpu), max(self.memory, other.memory), scalars)

    def minimum(self, other: "ResourceList", missing: Missing) -> "ResourceList":
        """Return this list cut to the other one; what the other does not name is cut to 0, or not at all."""
        scalars = {
            name: amount if self._free(other, name, missing) else min(amount, other.get(name))
            for name, amount in self.scalars.items()
        }
        return ResourceList(min(self.cpu, other.cpu), min(self.memory, other.memory), scalars)

    def difference(self, other: "ResourceList", missing: Missing) -> tuple["ResourceList", "ResourceList"]:
        """Return how much more this list has than the other, and how much less.

        A scalar stands in one of the two: in the first if there is more of it here, else in the second. One that a side
        without limit does not name is UNKNOWN_DIFFERENCE on that side.
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
        """Return what this list has beyond the other (Volcano: ExceededPart); it names only scalars that exceed."""
        return self.difference(other, Missing.ZERO)[0]

    # Comparisons of whole lists

    def less_than(self, other: "ResourceList", missing: Missing) -> bool:
        """Say whether every resource named here is strictly less.

        A scalar that only the other side names does not matter, unless what is missing is UNLIMITED: then it is not.
        """
        return self._lower_everywhere(other, missing, tolerance=None)

    def at_most(self, other: "ResourceList", missing: Missing) -> bool:
        """Say whether every resource named here is at most that of the other; see `less_than`."""
        return self._lower_everywhere(other, missing, tolerance=EPSILON)

    def less_in_some(self, other: "ResourceList", missing: Missing) -> bool:
        """Say whether some resource is strictly less.

        A scalar that only the other side names is less even if it is 0 there (Volcano), unless what is missing is
        UNLIMITED: then it is not.
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
        """Return the resources in which this list exceeds the other; what only the other names never is one."""
        return tuple(
            name
            for name, amount in self._items()
            if not self._free(other, name, missing) and not _lower(amount, other.get(name), EPSILON)
        )

    # Comparisons in what is asked for: resources of which ``asked`` has more than 0, pods left aside

    def over_asked(self, other: "ResourceList", asked: "ResourceList") -> tuple[str, ...]:
        """Return the resources asked for in which this list exceeds the other, compared exactly."""
        return tuple(name for name in _asked(asked) if self.get(name) > other.get(name))

    def over_asked_where_given(self, other: "ResourceList", asked: "ResourceList") -> tuple[str, ...]:
        """Return the same without cpu and memory of which the other has nothing and scalars it does not name."""
        return tuple(name for name in self.over_asked(other, asked) if other._gives(name))

    def within_asked(self, other: "ResourceList", asked: "ResourceList") -> tuple[str, ...]:
        """Return the resources asked for of which this list has at most what the other has."""
        return tuple(name for name in _asked(asked) if _lower(self.get(name), other.get(name), EPSILON))

    def within_asked_nonzero(self, other: "ResourceList", asked: "ResourceList") -> tuple[str, ...]:
        """Return the same without resources of which neither list has anything."""
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
        """Say whether the other side sets no limit to a resource that this side has."""
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
"""The list that names nothing."""


def _lower(left: float, right: float, tolerance: float | None) -> bool:
    return left < right or (tolerance is not None and abs(left - right) < tolerance)


def _asked(request: ResourceList) -> Iterator[str]:
    return (name for name, amount in request._items() if amount > 0 and name not in _LEFT_ASIDE)


def _number(amount: float) -> str:
    return "maxFloat" if amount >= UNLIMITED else f"{amount:.2f}"
