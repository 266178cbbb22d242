"""Every operation that rows can ask for, by area: the explicit table the runner looks into."""

from collections.abc import Mapping
from typing import Final

from tests.conformance.handlers import (
    arguments,
    jobs,
    node_selection,
    pod_requests,
    resources,
    unschedule_messages,
)
from tests.conformance.handlers.scheduler import (
    cycle,
    enqueueable,
    job_order,
    node_order,
    predicate,
    queue_share,
    strategies,
    tdm,
    topology,
    usage,
    victims,
)
from tests.conformance.operations import Operation

CYCLE: Final[Mapping[str, Operation]] = {"cycle": cycle.OPERATION}

AREAS: Final[Mapping[str, Mapping[str, Operation]]] = {
    "arguments": arguments.OPERATIONS,
    "jobs": jobs.OPERATIONS,
    "node_selection": node_selection.OPERATIONS,
    "pod_requests": pod_requests.OPERATIONS,
    "resources": resources.OPERATIONS,
    "unschedule_messages": unschedule_messages.OPERATIONS,
    "scheduler/allocate": CYCLE,
    "scheduler/backfill": CYCLE,
    "scheduler/binpack": {"nodeOrder": node_order.OPERATION},
    "scheduler/capacity": {**CYCLE, "queueShare": queue_share.OPERATION},
    "scheduler/enqueue": CYCLE,
    "scheduler/gangpreempt": CYCLE,
    "scheduler/gangreclaim": CYCLE,
    "scheduler/nodegroup": {"nodeOrder": node_order.OPERATION, "predicate": predicate.OPERATION},
    "scheduler/nodeorder": CYCLE,
    "scheduler/overcommit": {"enqueueable": enqueueable.OPERATION},
    "scheduler/predicates": CYCLE,
    "scheduler/preempt": CYCLE,
    "scheduler/priority": {**CYCLE, "evictable": victims.EVICTABLE},
    "scheduler/proportion": CYCLE,
    "scheduler/reclaim": CYCLE,
    "scheduler/resource-strategy-fit": {**CYCLE, "nodeOrder": node_order.OPERATION, **strategies.OPERATIONS},
    "scheduler/resourcequota": {"enqueueable": enqueueable.OPERATION},
    "scheduler/task-topology": topology.OPERATIONS,
    "scheduler/shuffle": CYCLE,
    "scheduler/tdm": tdm.OPERATIONS,
    "scheduler/usage": usage.OPERATIONS,
    "scheduler/sla": {"jobOrder": job_order.OPERATION},
    "scheduler/victims": {"preemptable": victims.PREEMPTABLE},
}


def operation_of(area: str, name: str) -> Operation:
    """Return the handler of an operation; the same name means different things in different areas."""
    operation = AREAS.get(area, {}).get(name)
    if operation is None:
        known = ", ".join(sorted(AREAS.get(area, {}))) or "none"
        raise AssertionError(f'nobody handles operation "{name}" of area "{area}"; handled there: {known}')
    return operation
