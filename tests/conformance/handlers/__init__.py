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
from volcano_py.actions import ACTIONS
from volcano_py.plugins import PLUGINS

CYCLE: Final[Mapping[str, Operation]] = {"cycle": cycle.OPERATION}

AREAS: Final[Mapping[str, Mapping[str, Operation]]] = {
    **{f"scheduler/{name}": CYCLE for name in (*ACTIONS, *PLUGINS)},
    "arguments": arguments.OPERATIONS,
    "jobs": jobs.OPERATIONS,
    "node_selection": node_selection.OPERATIONS,
    "pod_requests": pod_requests.OPERATIONS,
    "resources": resources.OPERATIONS,
    "unschedule_messages": unschedule_messages.OPERATIONS,
    "scheduler/binpack": {**CYCLE, "nodeOrder": node_order.OPERATION},
    "scheduler/capacity": {**CYCLE, "queueShare": queue_share.OPERATION},
    "scheduler/nodegroup": {**CYCLE, "nodeOrder": node_order.OPERATION, "predicate": predicate.OPERATION},
    "scheduler/overcommit": {**CYCLE, "enqueueable": enqueueable.REPORTED},
    "scheduler/priority": {**CYCLE, "evictable": victims.EVICTABLE},
    "scheduler/resource-strategy-fit": {**CYCLE, "nodeOrder": node_order.OPERATION, **strategies.OPERATIONS},
    "scheduler/resourcequota": {**CYCLE, "enqueueable": enqueueable.ASKED},
    "scheduler/task-topology": {**CYCLE, **topology.OPERATIONS},
    "scheduler/tdm": {**CYCLE, **tdm.OPERATIONS},
    "scheduler/usage": {**CYCLE, **usage.OPERATIONS},
    "scheduler/sla": {**CYCLE, "jobOrder": job_order.OPERATION},
    "scheduler/victims": {"preemptable": victims.PREEMPTABLE},
}


def operation_of(area: str, name: str) -> Operation:
    """Return the handler of an operation; the same name means different things in different areas."""
    operation = AREAS.get(area, {}).get(name)
    if operation is None:
        known = ", ".join(sorted(AREAS.get(area, {}))) or "none"
        raise AssertionError(f'nobody handles operation "{name}" of area "{area}"; handled there: {known}')
    return operation
