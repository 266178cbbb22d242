"""Runs all checks on a cluster."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from volcano_py.api import keys
from volcano_py.kube import resource as kinds
from volcano_py.migration.cluster import Cluster
from volcano_py.migration.configuration import judge_absent_sources, judge_source, sources_of
from volcano_py.migration.definitions import judge_definitions
from volcano_py.migration.delays import Delays
from volcano_py.migration.findings import Finding, Ref, Report, ref_of, text
from volcano_py.migration.jobs import judge_job
from volcano_py.migration.permissions import (
    judge_bindings,
    judge_budgets,
    judge_network_policies,
    judge_priority_classes,
    judge_quotas,
    judge_roles,
    judge_services,
    judge_user_roles,
)
from volcano_py.migration.pods import judge_group, judge_pod, owner
from volcano_py.migration.programs import SCHEDULER, Workload, workloads_of
from volcano_py.migration.queues import count_group, judge_queue
from volcano_py.migration.relatives import Queues
from volcano_py.migration.schedules import judge_cron_job, judge_flow, judge_template
from volcano_py.migration.topology import (
    judge_colocation,
    judge_commands,
    judge_hyper_nodes,
    judge_nodes,
    judge_numatopologies,
    judge_shards,
)
from volcano_py.migration.webhooks import judge_namespaces, judge_policies, judge_webhooks
from volcano_py.migration.workloads import Judge, judge_absent, judge_together, judge_workload, notes_about

T = TypeVar("T")
Judged = Iterable[tuple[Ref, Iterable[Finding]]]


_OF_PROGRAMS = (kinds.DEPLOYMENTS, kinds.DAEMON_SETS, kinds.STATEFUL_SETS)


def volcanos_workloads(cluster: Cluster) -> list[Workload]:
    """Return the Deployments, DaemonSets and StatefulSets that run programs of Volcano."""
    return workloads_of(cluster.all(*_OF_PROGRAMS))


def check(cluster: Cluster, judge: Judge) -> Report:
    """Return what differs in a cluster; ``judge`` knows the flags of our programs."""
    report = Report()
    workloads = volcanos_workloads(cluster)
    _programs(report, cluster, workloads, judge)
    _installation(report, cluster, workloads)
    _objects(report, cluster, _scheduler_names(workloads))
    report.notes += notes_about(workloads)
    if not workloads and all(map(cluster.knows, _OF_PROGRAMS)):
        report.notes.append("no program of Volcano was found: no image, label or name is one of Volcano's")
    return report


def _scheduler_names(workloads: list[Workload]) -> set[str]:
    """Return the names by which pods choose one of Volcano's schedulers."""
    names = {keys.SCHEDULER_NAME}
    for one in workloads:
        if one.program == SCHEDULER:
            names |= {name for value in one.values("scheduler-name") for name in value.split(",")}
    return names


def _programs(report: Report, cluster: Cluster, workloads: list[Workload], judge: Judge) -> None:
    together = list(judge_together(workloads))
    for one in workloads:
        report.judged(one.ref, [*judge_workload(one, judge), *(each for each in together if each.ref == one.ref)])
    if cluster.knows(kinds.DEPLOYMENTS):
        _take(report, judge_absent(workloads))
    if cluster.read(kinds.CONFIG_MAPS):
        for finding in judge_absent_sources(workloads, cluster.all(kinds.CONFIG_MAPS)):
            report.judged(finding.ref, [finding])
    for source in sources_of(workloads, cluster.all(kinds.CONFIG_MAPS)):
        report.judged(source.ref, judge_source(source))


def _installation(report: Report, cluster: Cluster, workloads: list[Workload]) -> None:
    if cluster.knows(kinds.CUSTOM_RESOURCE_DEFINITIONS):
        _take(report, judge_definitions(cluster.all(kinds.CUSTOM_RESOURCE_DEFINITIONS), cluster.definitions))
    if cluster.knows(kinds.MUTATING_WEBHOOKS) and cluster.knows(kinds.VALIDATING_WEBHOOKS):
        configurations = cluster.all(kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS)
        _take(report, judge_webhooks(configurations, workloads))
        _take(report, judge_namespaces(cluster.all(kinds.NAMESPACES), configurations))
    _take(report, judge_policies(cluster.all(kinds.VALIDATING_POLICIES, kinds.MUTATING_POLICIES)))
    _take(report, judge_roles(cluster.all(kinds.CLUSTER_ROLES), workloads))
    _take(report, judge_user_roles(cluster.all(kinds.CLUSTER_ROLES)))
    _take(report, judge_bindings(cluster.all(kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLE_BINDINGS), workloads))
    _take(report, judge_priority_classes(cluster.all(kinds.PRIORITY_CLASSES)))
    _take(report, judge_services(cluster.all(kinds.SERVICES), workloads))
    _take(report, judge_network_policies(cluster.all(kinds.NETWORK_POLICIES), workloads))
    _take(report, judge_quotas(cluster.all(kinds.RESOURCE_QUOTAS), workloads))
    _take(report, judge_budgets(cluster.all(kinds.POD_DISRUPTION_BUDGETS), workloads))


def _objects(report: Report, cluster: Cluster, scheduler_names: Collection[str]) -> None:
    queues = Queues(cluster.all(kinds.QUEUES))
    names: Collection[str] = _names_or_all(queues.by_name if cluster.knows(kinds.QUEUES) else None)
    delays = Delays()
    for job in cluster.pass_by(kinds.VCJOBS):
        ref = ref_of(job, "Job")
        delays.job(job)
        report.judged(ref, judge_job(ref, job, names, scheduler_names))
    groups: dict[str, Counter[str]] = {}
    for group in cluster.pass_by(kinds.PODGROUPS):
        ref = ref_of(group, "PodGroup")
        count_group(groups, group)
        delays.group(group, owner(group))
        report.judged(ref, judge_group(ref, group, names))
    untouched = bool(queues.by_name) and not any(text(one, "status", "state") for one in queues.queues())
    if untouched:
        report.notes.append("no queue has a state, so Volcano's controllers have not run here; ours open every queue")
    for name, queue in queues.by_name.items():
        ref = Ref("Queue", name)
        report.judged(ref, judge_queue(ref, queue, queues, groups.get(name, {}), stateless=untouched))
    _schedules(report, cluster, scheduler_names)
    _nodes(report, cluster)
    _pods(report, cluster, scheduler_names, delays)


def _schedules(report: Report, cluster: Cluster, scheduler_names: Collection[str]) -> None:
    for cron_job in cluster.all(kinds.CRON_JOBS):
        ref = ref_of(cron_job)
        report.judged(ref, judge_cron_job(ref, cron_job, scheduler_names))
    objects = cluster.all(kinds.JOB_TEMPLATES)
    found = {(ref_of(one).namespace, ref_of(one).name) for one in objects}
    templates = _names_or_all(found if cluster.knows(kinds.JOB_TEMPLATES) else None)
    for template in objects:
        ref = ref_of(template)
        report.judged(ref, judge_template(ref, template, scheduler_names))
    for flow in cluster.all(kinds.JOB_FLOWS):
        ref = ref_of(flow)
        report.judged(ref, judge_flow(ref, flow, templates))


def _nodes(report: Report, cluster: Cluster) -> None:
    _take(report, judge_hyper_nodes(cluster.all(kinds.HYPER_NODES)))
    _take(report, judge_numatopologies(cluster.all(kinds.NUMATOPOLOGIES)))
    _take(report, judge_shards(cluster.all(kinds.NODE_SHARDS)))
    _take(report, judge_colocation(cluster.all(kinds.COLOCATION_CONFIGURATIONS)))
    _take(report, judge_commands(cluster.all(kinds.COMMANDS)))
    _take(report, judge_nodes(cluster.pass_by(kinds.NODES)))


def _pods(report: Report, cluster: Cluster, scheduler_names: Collection[str], delays: Delays) -> None:
    """Judge pods by their owners: a workload has one finding, however many pods it has."""
    found: dict[Finding, None] = {}
    for pod in cluster.pass_by(kinds.PODS):
        delays.pod(pod)
        for one in judge_pod(pod, scheduler_names):
            found[one] = None
    for finding in (*found, *(delays.found() if cluster.read(kinds.PODS) else ())):
        report.judged(finding.ref, [finding])


def _take(report: Report, judged: Judged) -> None:
    for ref, found in judged:
        report.judged(ref, found)


class _Everything(Collection[T]):
    """Stands for names that could not be read: none of them counts as missing."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[T]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _names_or_all(names: Collection[T] | None) -> Collection[T]:
    return _Everything() if names is None else names
