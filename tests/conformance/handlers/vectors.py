"""Resource vectors as rows write them: {milliCPU, memory, scalarResources, maxTaskNum}."""

from collections.abc import Mapping
from typing import Any

from volcano_py.model.resource_lists import ResourceList

_KEYS = {"milliCPU", "memory", "scalarResources", "maxTaskNum"}


def resource_list(vector: Mapping[str, Any]) -> ResourceList:
    """Return the resource list of a vector. maxTaskNum is ignored: it repeats the number of pods."""
    unknown = vector.keys() - _KEYS
    assert not unknown, f"a resource vector has unknown keys: {sorted(unknown)}"
    return ResourceList(
        cpu=float(vector.get("milliCPU", 0)),
        memory=float(vector.get("memory", 0)),
        scalars={name: float(amount) for name, amount in vector.get("scalarResources", {}).items()},
    )


def same_vector(expected: Mapping[str, Any], actual: ResourceList, _: Mapping[str, Any]) -> None:
    """Assert equal amounts; an expected scalar must be present, any other scalar must be absent or 0."""
    wanted = resource_list(expected)
    assert (actual.cpu, actual.memory) == (wanted.cpu, wanted.memory)
    named = {name: actual.scalars.get(name) for name in wanted.scalars}
    assert named == wanted.scalars
    assert {name: amount for name, amount in actual.scalars.items() if amount and name not in wanted.scalars} == {}
