"""Every operation of the rows, by area: the explicit table that the runner uses."""

from collections.abc import Mapping
from typing import Final

from tests.conformance.handlers import (
    admission,
    arguments,
    cli,
    hyper_nodes,
    job_plugins,
    jobs,
    node_selection,
    pod_requests,
    resources,
    sub_jobs,
    unschedule_messages,
)
from tests.conformance.handlers.controllers import (
    cronjob,
    garbage_collector,
    hypernode_config,
    job_flow,
    job_pods,
    job_steps,
    min_resources,
    pod_groups,
    policies,
    queue_states,
)
from tests.conformance.handlers.scheduler import (
    cycle,
    enqueueable,
    job_order,
    network_topology,
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

SESSION: Final[Mapping[str, Operation]] = {
    "cycle": cycle.OPERATION,
    "enqueueable": enqueueable.ASKED,
    "evictable": victims.EVICTABLE,
    "nodeOrder": node_order.OPERATION,
    "predicate": predicate.OPERATION,
    "preemptable": victims.PREEMPTABLE,
    "victimTasks": tdm.VICTIM_TASKS,
}
"""The session operations that every area of the scheduler may use."""

AREAS: Final[Mapping[str, Mapping[str, Operation]]] = {
    **admission.AREAS,
    "arguments": arguments.OPERATIONS,
    **cli.AREAS,
    "hyper_nodes": hyper_nodes.OPERATIONS,
    "controllers/apply_policies": policies.OPERATIONS,
    "controllers/hypernode_config": hypernode_config.OPERATIONS,
    "controllers/cronjob": cronjob.OPERATIONS,
    "controllers/garbage_collector": garbage_collector.OPERATIONS,
    "controllers/job_plugins": job_plugins.OPERATIONS,
    "controllers/job_pods": job_pods.OPERATIONS,
    "controllers/job_state_machine": job_steps.OPERATIONS,
    "controllers/jobflow": job_flow.OPERATIONS,
    "controllers/pod_group_min_resources": min_resources.OPERATIONS,
    "controllers/podgroup": pod_groups.OPERATIONS,
    "controllers/queue_state_machine": queue_states.OPERATIONS,
    "jobs": jobs.OPERATIONS,
    "node_selection": node_selection.OPERATIONS,
    "pod_requests": pod_requests.OPERATIONS,
    "resources": resources.OPERATIONS,
    "sub_jobs": sub_jobs.OPERATIONS,
    "unschedule_messages": unschedule_messages.OPERATIONS,
    **{f"scheduler/{name}": SESSION for name in (*ACTIONS, *PLUGINS, "victims")},
    "scheduler/capacity": {**SESSION, "queueShare": queue_share.OPERATION},
    "scheduler/network-topology": {**SESSION, **network_topology.OPERATIONS},
    "scheduler/partition-policy": SESSION,
    "scheduler/overcommit": {**SESSION, "enqueueable": enqueueable.REPORTED},
    "scheduler/resource-strategy-fit": {**SESSION, **strategies.OPERATIONS},
    "scheduler/task-topology": {**SESSION, **topology.OPERATIONS},
    "scheduler/tdm": {**SESSION, **tdm.OPERATIONS},
    "scheduler/usage": {**SESSION, **usage.OPERATIONS},
    "scheduler/sla": {**SESSION, "jobOrder": job_order.OPERATION},
}


def operation_of(area: str, name: str) -> Operation:
    """Return the handler of an operation; the same name means different things in different areas."""
    handled = AREAS.get(area, SESSION if area.startswith("scheduler/") else {})
    operation = handled.get(name)
    if operation is None:
        known = ", ".join(sorted(handled)) or "none"
        raise AssertionError(f'no handler for operation "{name}" of area "{area}"; handled there: {known}')
    return operation
