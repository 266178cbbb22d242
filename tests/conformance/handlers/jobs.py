"""Area jobs: derived facts of a job."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.conformance.handlers.scheduler.world import CLOCK, open_session
from tests.conformance.handlers.sub_jobs import hard_topology
from tests.conformance.handlers.vectors import resource_list, same_vector
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api import keys
from volcano_py.conf.schema import PluginConf, SchedulerConf, Where
from volcano_py.framework.session import Session
from volcano_py.framework.state import reservations
from volcano_py.framework.state.memory import Memory
from volcano_py.model.arrays import Floats
from volcano_py.model.objects import GroupCondition, JobKey, JobRecord, NodeRecord, QueueRecord, TaskRecord
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.resources import amounts_of
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import PodGroupPhase, TaskStatus
from volcano_py.scheduler import resolve
from volcano_py.scheduler.status import phases
from volcano_py.snapshot.store import ClusterStore

KEY: Final = JobKey("ns", "job")
_HERE: Final = Where("row", 1)
_TASK_KEYS: Final = frozenset({"nodeName", "status", "resreq", "uid"})


def _elastic_resources(case: Case) -> Outcome:
    group = case.input["podGroup"]
    name = group["metadata"]["name"]
    pods = [_member_of(name, pod) for pod in case.input["pods"]]
    objects = {"podGroups": [group], "pods": pods}
    no_plugins: dict[str, Any] = {"tiers": [], "effectivePlugins": []}
    ssn = open_session(Case(case.operation, objects, {}, no_plugins))
    return {"elastic": _of_only_job(ssn, reservations.elastic(ssn.state.jobs))}


def _inqueue_resource(case: Case) -> Outcome:
    allocated = resource_list(case.input["allocated"])
    minimum = amounts_of(case.input["minResources"], "minResources")
    store = _store(JobRecord(KEY, "uid", "q", min_resources=minimum), ["n"])
    shape = _shape(allocated)
    store.set_task(TaskRecord("t", KEY.namespace, "t", KEY.name), shape or Shape(()), TaskStatus.RUNNING, "n")
    ssn = _session(store)
    return {"reserved": _of_only_job(ssn, reservations.rest(ssn.state))}


def _min_task_member_change(case: Case) -> Outcome:
    store = ClusterStore()
    for members in (case.input["before"], case.input.get("after", {})):
        store.set_job(JobRecord(KEY, "uid", "q", task_min_available=members))
    job = _session(store).state.job(0)
    return {"minAvailable": job.record.task_min_available, "total": job.task_min_total}


def _pod_group_phase(case: Case) -> Outcome:
    job = case.input["job"]
    group = job["podGroup"]
    phase = group.get("status", {}).get("phase", "")
    record = JobRecord(KEY, "uid", "q", group.get("spec", {}).get("minMember", 0), phase=phase)
    ssn = _session(_with_tasks(record, job["tasks"]))
    if case.input["unschedulable"]:
        ssn.state.outcome.conditions[0] = [GroupCondition(keys.CONDITION_UNSCHEDULABLE, True, "", "")]
    return {"phase": PodGroupPhase(int(phases(ssn)[0])).label}


def _skip_unschedulable_condition(case: Case) -> Outcome:
    record = JobRecord(KEY, "uid", "q", case.input["minAvailable"], phase=keys.PHASE_RUNNING)
    ssn = _session(_with_tasks(record, case.input["tasks"]), "gang")
    for plugin in ssn.hooks.plugins():
        plugin.on_session_close(ssn.state)
    warnings = [
        new
        for new in ssn.state.outcome.conditions.get(0, ())
        if new.type == keys.CONDITION_UNSCHEDULABLE and new.status
    ]
    return {"skip": not warnings}


def _with_tasks(record: JobRecord, tasks: Iterable[Mapping[str, Any]]) -> ClusterStore:
    tasks = list(tasks)
    store = _store(record, [task["nodeName"] for task in tasks if "nodeName" in task])
    for task in tasks:
        assert task.keys() <= _TASK_KEYS
        member = TaskRecord(task["uid"], record.key.namespace, task["uid"], record.key.name)
        # Each task gets a request: a best-effort task would count towards the minimum even while pending.
        shape = _shape(resource_list(task.get("resreq", {}))) or _shape(ResourceList(cpu=1.0))
        store.set_task(member, shape, TaskStatus[task["status"].upper()], task.get("nodeName", ""))
    return store


def _shape(request: ResourceList) -> Shape | None:
    """Return the shape of a task with this request, None if it requests nothing."""
    amounts = {keys.CPU: request.cpu, keys.MEMORY: request.memory, **request.scalars}
    asked = tuple(sorted((name, amount) for name, amount in amounts.items() if amount))
    return Shape(request=asked) if asked else None


def _store(record: JobRecord, nodes: Iterable[str]) -> ClusterStore:
    store = ClusterStore()
    store.set_queue(QueueRecord(record.queue))
    store.set_job(record)
    for name in nodes:
        store.set_node(NodeRecord(name, allocatable={keys.CPU: 1e6, keys.PODS: 100.0}))
    return store


def _session(store: ClusterStore, *plugins: str) -> Session:
    tier = tuple(PluginConf(name, _HERE) for name in plugins)
    policy = resolve(SchedulerConf("row", ("allocate",), _HERE, (tier,)))
    return Session(
        snapshot=store.snapshot(),
        tiers=policy.instantiate(),
        actions=frozenset(policy.action_names),
        clock=CLOCK,
        seed=0,
        memory=Memory(),
        emit=lambda batch: None,
        static_filters=policy.static_filters,
    )


def _of_only_job(ssn: Session, amounts: Floats) -> ResourceList:
    (row,) = ssn.state.jobs.present().tolist()
    return ResourceList.from_vector(ssn.state.resources, amounts[:, row])


def _member_of(group: str, pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "annotations": {keys.GROUP_NAME: group}}}


def _listed_scalars(expected: Mapping[str, Any], actual: ResourceList, expect: Mapping[str, Any]) -> None:
    listed = expected.get("scalarResources", {})
    only = ResourceList(actual.cpu, actual.memory, {name: actual.get(name) for name in listed})
    same_vector(expected, only, expect)


OPERATIONS: Final = {
    "elasticResources": Operation(_elastic_resources, {"elastic": same_vector}, frozenset({"podGroup", "pods"})),
    "hardTopology": Operation(hard_topology, {"hard": same, "highestTier": same}, frozenset({"networkTopology"})),
    "inqueueResource": Operation(
        _inqueue_resource, {"reserved": _listed_scalars}, frozenset({"minResources", "allocated"})
    ),
    "minTaskMemberChange": Operation(
        _min_task_member_change, {"minAvailable": same, "total": same}, frozenset({"before", "after"})
    ),
    "podGroupPhase": Operation(_pod_group_phase, {"phase": same}, frozenset({"job", "unschedulable"})),
    "skipUnschedulableCondition": Operation(
        _skip_unschedulable_condition, {"skip": same}, frozenset({"minAvailable", "tasks"})
    ),
}
