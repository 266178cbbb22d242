"""When a step of a flow may start.

    no targets                          at once
    targets                             when the job of every target is Completed
    targets and probe.taskStatusList    when each target is Completed, or each entry that names a task of it holds

An entry of ``taskStatusList`` holds when as many pods of the task as its ``minAvailable`` (or all replicas) are in the
phase. For ``Running``, pods that have succeeded count, too. Volcano ignores probes.

The lists ``httpGetList`` and ``tcpSocketList`` are refused: the controllers would have to reach every pod over the
network, which network policies, such as the one of the job plugin ``svc``, forbid.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from volcano_py.api.batch import Job, Task
from volcano_py.api.flow import FlowStep, JobFlow, Probe, TaskStatusProbe
from volcano_py.controllers.job import phases
from volcano_py.controllers.jobflow.children import child_name

_SUCCEEDED: Final = "Succeeded"
_COUNTED: Final[Mapping[str, Sequence[str]]] = {
    "Pending": ("Pending",),
    "Running": ("Running", _SUCCEEDED),
    _SUCCEEDED: (_SUCCEEDED,),
    "Failed": ("Failed",),
}
"""The phases that a probe may name, and the phases of the pods that it counts."""

_NAMED: Final = 10
"""Steps that a text names at most."""

INVALID: Final = "InvalidStep"
UNSUPPORTED_PROBE: Final = "UnsupportedProbe"


class Refusal(NamedTuple):
    """Why a step cannot start as it stands: the reason of an event and its text."""

    reason: str
    text: str


def refusals(flow: JobFlow) -> dict[str, Refusal]:
    """Return the steps that the spec alone rules out, by name."""
    steps = {step.name: step for step in flow.spec.flows}
    found: dict[str, Refusal] = {}
    circle = _in_circles(steps)
    others = _some(sorted(circle))  # each of them has this text: with all names, it would grow with their square
    for step in steps.values():
        unknown = [target for target in _targets(step) if target not in steps]
        if unknown:
            text = f"dependsOn.targets names {_some(unknown)}, which the flow does not have: correct the name"
            found[step.name] = Refusal(INVALID, text)
        elif step.name in circle:
            found[step.name] = Refusal(INVALID, f"steps wait for each other in a circle, among {others}: break it")
        elif (refusal := _refused_probe(step)) is not None:
            found[step.name] = refusal
    return found


def _some(names: Sequence[str]) -> str:
    """Return names for a text, the first few of many."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


class TasksOfJobs:
    """The tasks of jobs by name, found once for all steps that depend on a job: both may be thousands."""

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, Task]] = {}

    def __call__(self, job: Job) -> Mapping[str, Task]:
        """Return the tasks of a job of the flow."""
        name = job.metadata.name
        found = self._known.get(name)
        if found is None:
            tasks = enumerate(job.spec.tasks)
            found = self._known[name] = {task.name or f"default{index}": task for index, task in tasks}
        return found


def may_start(
    flow: str, step: FlowStep, jobs: Mapping[str, Job], completed: frozenset[str], tasks_of: TasksOfJobs
) -> bool | Refusal:
    """Say whether a step may start; ``completed`` has the names of completed jobs, also of those that are gone."""
    waiting = [name for target in _targets(step) if (name := child_name(flow, target)) not in completed]
    probes = _probe(step).task_status_list
    if not waiting:
        return True
    if not probes:
        return False
    targets = [jobs[name] for name in waiting if name in jobs]
    if len(targets) < len(waiting):
        return False  # a target that has no job yet
    named = {probe.task_name for probe in probes}
    tasks = [tasks_of(job) for job in targets]
    unknown = sorted(name for name in named if not any(name in found for found in tasks))
    if unknown and len(waiting) == len(_targets(step)):
        return Refusal(INVALID, f"probe.taskStatusList names task {unknown[0]}, which no target has: correct the name")
    return all(_holds(job, found, probes) for job, found in zip(targets, tasks, strict=True))


def _holds(job: Job, tasks: Mapping[str, Task], probes: Sequence[TaskStatusProbe]) -> bool:
    """Say whether the probes that name a task of this job hold; a job that none of them names must be completed."""
    own = [probe for probe in probes if probe.task_name in tasks]
    return bool(own) and all(_reached(job, tasks[probe.task_name], probe) for probe in own)


def _reached(job: Job, task: Task, probe: TaskStatusProbe) -> bool:
    state = job.status.task_status_count.get(probe.task_name)
    pods = 0 if state is None else sum(state.phase.get(phase, 0) for phase in _COUNTED[probe.phase])
    least = task.replicas if task.min_available is None else task.min_available
    return job.status.state.phase not in phases.FINISHED and pods >= max(least, 1)


def _targets(step: FlowStep) -> Sequence[str]:
    return step.depends_on.targets if step.depends_on is not None else ()


def _probe(step: FlowStep) -> Probe:
    return (step.depends_on.probe if step.depends_on is not None else None) or Probe()


def _refused_probe(step: FlowStep) -> Refusal | None:
    probe = _probe(step)
    for field, entries in (("httpGetList", probe.http_get_list), ("tcpSocketList", probe.tcp_socket_list)):
        if entries:
            return Refusal(
                UNSUPPORTED_PROBE,
                f"dependsOn.probe.{field} is not supported: the controllers do not connect to pods; use taskStatusList "
                "with phase Running, and let the first container of the step wait for the address",
            )
    for entry in probe.task_status_list:
        if entry.phase not in _COUNTED:
            text = f"probe.taskStatusList has phase {entry.phase!r}: write one of {', '.join(_COUNTED)}"
            return Refusal(INVALID, text)
    return None


def _in_circles(steps: Mapping[str, FlowStep]) -> set[str]:
    """Return the steps that wait for themselves over others; those behind a circle are not among them."""
    before = {name: {target for target in _targets(step) if target in steps} for name, step in steps.items()}
    after: dict[str, set[str]] = {name: set() for name in steps}
    for name, targets in before.items():
        for target in targets:
            after[target].add(name)
    left = _without_ends(set(steps), before, after)  # what no circle precedes
    return _without_ends(left, after, before)  # what no circle follows


def _without_ends(names: set[str], before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> set[str]:
    """Return the names without those that have none of the others before them, and so on; each edge is looked at once.

    Flows may have thousands of steps, and all controllers wait meanwhile.
    """
    missing = {name: len(before[name] & names) for name in names}
    ends = [name for name, count in missing.items() if not count]
    for name in ends:  # grows while it is read
        for other in after[name] & names:
            missing[other] -= 1
            if not missing[other]:
                ends.append(other)
    return names - set(ends)
