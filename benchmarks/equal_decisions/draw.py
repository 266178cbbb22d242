"""Chance that a seed decides: the same seed draws the same, in every process."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Json = dict[str, Any]

GIB = 1024  # amounts of memory are in MiB
GPU = "nvidia.com/gpu"
FPGA = "example.com/fpga"
ZONES = ("z1", "z2", "z3")
GROUPS = ("g1", "g2", "g3")  # of nodes
APPS = ("web", "db", "batch")
EPOCH = 1_704_067_200  # 2024-01-01T00:00:00Z, seconds since the epoch


class Draw(random.Random):
    """A source of chance with the few questions that generators ask."""

    def chance(self, probability: float) -> bool:
        """Say yes in this part of all cases."""
        return self.random() < probability

    def weighted(self, table: Mapping[T, float]) -> T:
        """Return a key, the more often the greater its value."""
        return self.choices(list(table), list(table.values()))[0]

    def some(self, items: Sequence[T], at_least: int = 0, at_most: int | None = None) -> list[T]:
        """Return some of these items in a random order."""
        most = len(items) if at_most is None else min(at_most, len(items))
        return self.sample(list(items), self.randint(min(at_least, most), most))


def quantities(cpu: float = 0, memory: float = 0, **others: Any) -> Json:
    """Return a resource list: milli-cores, MiB, and others by their names with __ for a slash and _ for a dot."""
    found: Json = {"cpu": f"{round(cpu)}m"} if cpu else {}
    if memory:
        found["memory"] = f"{round(memory)}Mi"
    return found | {name.replace("__", "/").replace("_", "."): str(amount) for name, amount in others.items() if amount}


def an_object(kind: str, name: str, namespace: str = "", created: float = EPOCH, **fields: Any) -> Json:
    """Return an object with its metadata; ``labels`` and ``annotations`` go there, the other fields beside it."""
    metadata: Json = {"name": name, "uid": f"{kind}/{namespace}/{name}", "creationTimestamp": at(created)}
    if namespace:
        metadata["namespace"] = namespace
    for part in ("labels", "annotations", "ownerReferences", "generation"):
        if fields.get(part):
            metadata[part] = fields[part]
        fields.pop(part, None)
    return {"kind": kind, "metadata": metadata, **fields}


def at(seconds: float) -> str:
    """Return a moment as objects write it."""
    days, rest = divmod(int(seconds) - EPOCH, 86_400)
    return f"2024-01-{1 + days:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"
