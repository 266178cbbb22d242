"""Operation queueShare of capacity: the share of a queue from its deserved and allocated vectors."""

from typing import Final

from tests.conformance.handlers.vectors import resource_list
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.model.resources import EPSILON, ResourceRegistry
from volcano_py.plugins.capacity.entitlements import share


def _run(case: Case) -> Outcome:
    deserved, allocated, _ = (resource_list(case.input.get(key) or {}) for key in ("deserved", "allocated", "request"))
    registry = ResourceRegistry((*deserved.scalars, *allocated.scalars))
    due = [(row, amount) for row, amount in enumerate(deserved.vector(registry).tolist()) if amount >= EPSILON]
    return {"share": share(allocated.vector(registry).tolist(), due)}


OPERATION: Final = Operation(_run, {"share": same}, frozenset({"deserved", "allocated", "request"}))
