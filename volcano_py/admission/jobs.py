"""Jobs: their defaults, what is wrong with a new one, and what may change later."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from volcano_py.admission import names, policies
from volcano_py.admission.amounts import amount
from volcano_py.admission.contract import (
    ALLOWED,
    CREATE,
    UPDATE,
    Obj,
    Options,
    Refusal,
    Request,
    Verdict,
    View,
)
from volcano_py.admission.graph import in_order
from volcano_py.admission.pod_rules.template import known_flaws
from volcano_py.admission.queue_state import is_open, missing, not_open, open_queues
from volcano_py.admission.reading import entries, name_of, part, parts, too_deep, typed, words, wrong_operation
from volcano_py.admission.sameness import fixed_spec
from volcano_py.admission.topology import tier_given_twice
from volcano_py.api import keys
from volcano_py.api.batch import Job, PartitionPolicy, Task
from volcano_py.api.job_defaults import with_defaults
from volcano_py.api.plugin_arguments import parse

_NO_POLICY: Final = ("", "none")

# Mutation


def mutate(request: Request, view: View, options: Options) -> Verdict:
    """Fill in what a new job leaves out: the same defaults as the job controller's."""
    if request.operation != CREATE:
        return wrong_operation("'CREATE' ")
    job = typed(request.object, Job)
    if isinstance(job, Refusal):
        return ALLOWED  # the definition of jobs refuses it, and its words are better
    spec = part(request.object, "spec")
    full = _full(job, options)
    patch: list[Obj] = [{"op": "add", "path": "/spec", "value": {}}] if request.object.get("spec") is None else []
    for field, before, after in (
        ("queue", job.spec.queue, full.spec.queue),
        ("schedulerName", job.spec.scheduler_name, full.spec.scheduler_name),
        ("maxRetry", job.spec.max_retry, full.spec.max_retry),
    ):
        if after != before:
            patch.append({"op": "add", "path": f"/spec/{field}", "value": after})
    tasks = tasks_with_defaults(parts(spec, "tasks"), job.spec.tasks, full.spec.tasks)
    if tasks and tasks != entries(spec, "tasks"):
        patch.append({"op": "replace", "path": "/spec/tasks", "value": tasks})
    if full.spec.min_available != job.spec.min_available:
        patch.append({"op": "add", "path": "/spec/minAvailable", "value": full.spec.min_available})
    if full.spec.plugins != job.spec.plugins:
        patch.append({"op": "replace", "path": "/spec/plugins", "value": dict(full.spec.plugins)})
    return Verdict(patch=tuple(patch))


def _full(job: Job, options: Options) -> Job:
    return with_defaults(job, scheduler_name=(options.scheduler_names or (keys.SCHEDULER_NAME,))[0])


def tasks_with_defaults(written: Sequence[Obj], before: Sequence[Task], after: Sequence[Task]) -> list[Any]:
    """Return tasks as they were written, with the defaults that they lack."""
    return [
        one if old == new else _task_with_defaults(one, old, new)
        for one, old, new in zip(written, before, after, strict=True)
    ]


def _task_with_defaults(written: Obj, old: Task, new: Task) -> Obj:
    fields = (
        ("name", old.name, new.name),
        ("minAvailable", old.min_available, new.min_available),
        ("maxRetry", old.max_retry, new.max_retry),
        ("template", old.template, new.template),
    )
    return {**written, **{field: after for field, before, after in fields if after != before}}


# Creation


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a job that could never run as it was meant, and changes of what is fixed."""
    if request.operation not in (CREATE, UPDATE):
        return wrong_operation("'CREATE' or 'UPDATE'")
    job = typed(request.object, Job)
    if isinstance(job, Refusal):
        return Verdict((job,))
    if request.operation == UPDATE:
        return Verdict(_changes(job, typed(request.old, Job), options))
    return Verdict((*spec_flaws(request.object, job, options), *_queue(job.spec.queue, view)))


def spec_flaws(wire: Obj, job: Job, options: Options) -> tuple[Refusal, ...]:
    """Return what is wrong with a new job on its own, whatever the state of its queue."""
    return tuple(_spec_flaws(wire, job, options))


def _spec_flaws(wire: Obj, job: Job, options: Options) -> Iterator[Refusal]:
    spec, tasks = job.spec, job.spec.tasks
    if not tasks:
        yield Refusal(
            " No task specified in job spec;", "spec.tasks", "add a task with a name, replicas and a template"
        )
    yield from _mpi(job)
    yield from tier_given_twice(part(wire, "spec"), "spec", " ", ";")
    seen: set[str] = set()
    for index, task in enumerate(tasks):
        if task.name in seen:
            hint = "give each task a name of its own"
            yield Refusal(f" duplicated task name {task.name};", f"spec.tasks[{index}].name", hint)
        seen.add(task.name)
        yield from _task(job, index, task, options)
    if problems := names.qualified(job.metadata.name):
        sentence = f" create job with name {job.metadata.name} validate failed {words(problems)};"
        yield Refusal(sentence, "metadata.name", "choose a name of at most 63 letters, digits and -")
    if tasks and sum(task.replicas for task in tasks) < spec.min_available:
        sentence = " job 'minAvailable' should not be greater than total replicas in tasks;"
        yield Refusal(sentence, "spec.minAvailable", "lower minAvailable or raise the replicas of tasks")
    yield from policies.flaws(spec.policies, "spec.policies", "spec.policies")
    for name in spec.plugins:
        if name not in options.job_plugins:
            hint = f"use {', '.join(sorted(options.job_plugins))}"
            yield Refusal(f" unable to find job plugin: {name};", f"spec.plugins[{name}]", hint)
    for flaw in policies.duration_flaws(spec.running_estimate, "spec.runningEstimate"):
        yield Refusal(f" {flaw.message};", flaw.field, flaw.hint)
    yield from _volumes(job)
    if any(task.depends_on is not None for task in tasks) and task_order(tasks) is None:
        sentence = " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"
        hint = "dependsOn names tasks of the same job, and no task waits for itself"
        yield Refusal(sentence, "spec.tasks", hint)


def task_order(tasks: Sequence[Task]) -> list[str] | None:
    """Return the names of tasks in the order in which they may start, None if there is none."""
    return in_order({task.name: task.depends_on.name if task.depends_on else () for task in tasks})


class _MpiArguments(msgspec.Struct, frozen=True):
    """The argument of plugin mpi that names a task."""

    master: str = "master"


def _mpi(job: Job) -> Iterator[Refusal]:
    if "mpi" not in job.spec.plugins or not job.spec.tasks:
        return
    arguments, _ = parse(_MpiArguments, job.spec.plugins["mpi"] or ())
    if all(task.name != arguments.master for task in job.spec.tasks):
        hint = f"name a task {arguments.master}, or name the task of the master: --master=TASK"
        yield Refusal(" The specified mpi master task was not found;", "spec.plugins[mpi]", hint)


def _task(job: Job, index: int, task: Task, options: Options) -> Iterator[Refusal]:
    path = f"spec.tasks[{index}]"
    of = f"task: {task.name}, job: {job.metadata.name}"
    if task.min_available is not None and task.min_available > task.replicas:
        sentence = f" 'minAvailable' is greater than 'replicas' in {of};"
        yield Refusal(sentence, f"{path}.minAvailable", "lower minAvailable or raise replicas")
    if task.partition_policy is not None:
        yield from _partitions(task, task.partition_policy, path, of)
        policy = msgspec.to_builtins(task.partition_policy)
        yield from tier_given_twice(policy, f"{path}.partitionPolicy", " ", f" in {of};")
    yield from policies.flaws(task.policies, f"{path}.policies", "spec.tasks.policies")
    pod = f"{job.metadata.name}-{task.name}-{index}"
    if problems := names.qualified(pod):
        sentence = f" create pod with name {pod} validate failed {words(problems)};"
        yield Refusal(sentence, f"{path}.name", "shorten the name of the job or of the task")
    flaws = known_flaws(task.template, f"{path}.template", options.pod_level_resources)
    for flaw in flaws:
        shown = flaw.field.replace(path, f"spec.task[{index}]", 1)
        yield Refusal(f" {shown}: {flaw.message}. ", flaw.field, flaw.hint)
    if not flaws:
        yield from cpu_flaws(task, index)


def _partitions(task: Task, policy: PartitionPolicy, path: str, of: str) -> Iterator[Refusal]:
    total, size, least = policy.total_partitions, policy.partition_size, policy.min_partitions
    path = f"{path}.partitionPolicy"
    if total <= 0:
        yield Refusal(
            f" 'TotalPartitions' must be greater than 0 in {of};", f"{path}.totalPartitions", "write 1 or more"
        )
    if size <= 0:
        yield Refusal(f" 'PartitionSize' must be greater than 0 in {of};", f"{path}.partitionSize", "write 1 or more")
    if total <= 0 or size <= 0:
        return
    if task.replicas != total * size:
        sentence = f" 'Replicas' are not equal to TotalPartitions*PartitionSize in {of};"
        yield Refusal(sentence, path, f"set replicas to {total * size}, or change the partitions")
    if least > 0 and task.min_available is not None and task.min_available != least * size:
        sentence = f" 'MinAvailable' is not equal to MinPartitions*PartitionSize in {of};"
        yield Refusal(sentence, path, f"set minAvailable to {least * size}, or leave it out")


def cpu_flaws(task: Task, index: int) -> Iterator[Refusal]:
    """Judge the CPU requests of a task with a policy for NUMA: whole CPUs can be given to one container alone."""
    if task.topology_policy in _NO_POLICY:
        return
    spec = part(task.template, "spec")
    for field in ("containers", "initContainers"):
        for position, container in enumerate(parts(spec, field)):
            resources = part(container, "resources")
            request = amount((part(resources, "requests") or part(resources, "limits")).get(keys.CPU))
            if request is None or request <= 0 or request.denominator != 1:
                sentence = f" the cpu request isn't  an integer in spec.task[{index}] container[{position}];"
                at = f"spec.tasks[{index}].template.spec.{field}[{position}].resources.requests.cpu"
                yield Refusal(sentence, at, f"request whole CPUs, or take topologyPolicy {task.topology_policy} out")


def _volumes(job: Job) -> Iterator[Refusal]:
    paths: set[str] = set()
    for index, volume in enumerate(job.spec.volumes):
        at = f"spec.volumes[{index}]"
        if not volume.mount_path:
            yield Refusal(" mountPath is required;", f"{at}.mountPath", "write the path inside of the containers")
        elif volume.mount_path in paths:
            sentence = f" duplicated mountPath: {volume.mount_path};"
            yield Refusal(sentence, f"{at}.mountPath", "mount each volume at a path of its own")
        paths.add(volume.mount_path)
        name, claim = volume.volume_claim_name, volume.volume_claim
        if claim is None and not name:
            sentence = " either VolumeClaim or VolumeClaimName must be specified;"
            yield Refusal(sentence, at, "name a claim that exists, or write the spec of a new one")
        elif claim is not None and name:
            sentence = (
                " conflict: If you want to use an existing PVC, just specify VolumeClaimName."
                "If you want to create a new PVC, you do not need to specify VolumeClaimName;"
            )
            yield Refusal(sentence, at, "take volumeClaim or volumeClaimName out")
        elif name and (problems := names.subdomain(name)):
            sentence = f" invalid VolumeClaimName {name} : {words(problems)};"
            yield Refusal(sentence, f"{at}.volumeClaimName", "write the name of a PersistentVolumeClaim")


def _queue(name: str, view: View) -> Iterator[Refusal]:
    path = "spec.queue"
    queue = view.queue(name)
    if queue is None:
        yield Refusal(f" unable to find job queue: {missing(name)};", path, open_queues(view))
        return
    if not is_open(queue):
        refusal = not_open(queue, "job", path, ";")
        yield Refusal(f" {refusal.message}", refusal.field, refusal.hint)
    if name == keys.ROOT_QUEUE:
        yield Refusal(" can not submit job to root queue;", path, open_queues(view, exists=True))
        return
    children = sorted(name_of(child) for child in view.children(name))
    if children:
        sentence = f" can only submit job to leaf queue, queue `{name}` has {len(children)} child queues;"
        yield Refusal(sentence, path, f"name a queue below it: {', '.join(children[:5])}")


# Update


def _changes(job: Job, old: Job | Refusal, options: Options) -> tuple[Refusal, ...]:
    try:
        return (old,) if isinstance(old, Refusal) else tuple(_update(job, old, options))
    except RecursionError:
        return (too_deep(),)


def _update(job: Job, old: Job, options: Options) -> Iterator[Refusal]:
    for index, task in enumerate(job.spec.tasks):
        path = f"spec.tasks[{index}]"
        least = task.min_available
        if task.replicas < 0:
            yield Refusal(f" 'replicas' must be >= 0 in task: {task.name};", f"{path}.replicas", "write 0 or more")
        if least is not None and least < 0:
            yield Refusal(
                f" 'minAvailable' must be >= 0 in task: {task.name};", f"{path}.minAvailable", "write 0 or more"
            )
        elif least is not None and least > task.replicas:
            sentence = f" 'minAvailable' must be <= 'replicas' in task: {task.name};"
            yield Refusal(sentence, f"{path}.minAvailable", "lower minAvailable, too, or raise replicas")
        if task.partition_policy is not None:
            of = f"task: {task.name}, job: {job.metadata.name}"
            yield from _partitions(task, task.partition_policy, path, of)
            policy = msgspec.to_builtins(task.partition_policy)
            yield from tier_given_twice(policy, f"{path}.partitionPolicy", " ", f" in {of};")
    if job.spec.min_available > sum(task.replicas for task in job.spec.tasks):
        sentence = " job 'minAvailable' must not be greater than total replicas;"
        yield Refusal(sentence, "spec.minAvailable", "lower minAvailable, too, or raise the replicas of tasks")
    if job.spec.min_available < 0:
        yield Refusal(" job 'minAvailable' must be >= 0;", "spec.minAvailable", "write 0 or more")
    yield from tier_given_twice(msgspec.to_builtins(job.spec), "spec", " ", ";")
    if len(job.spec.tasks) != len(old.spec.tasks):
        hint = "set the replicas of a task to 0, or create another job"
        yield Refusal(" job updates may not add or remove tasks;", "spec.tasks", hint)
    elif changed := list(_changed(_fixed(job, options), _fixed(old, options), "spec")):
        sentence = (
            " job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and "
            "`PriorityClassName`;"
        )
        yield Refusal(sentence, changed[0], f"create another job, or undo the change of {', '.join(changed)}")


def _fixed(job: Job, options: Options) -> Mapping[str, Any]:
    """Return what may not change, with the defaults.

    ``kubectl apply`` replaces the list of tasks as a whole, so it takes out the defaults that the webhook wrote there.
    """
    return fixed_spec(_full(job, options))


def _changed(new: Any, old: Any, path: str) -> Iterator[str]:
    """Yield the paths of the fields that differ."""
    if new == old:
        return
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        for name in sorted(new.keys() | old.keys()):
            yield from _changed(new.get(name), old.get(name), f"{path}.{name}")
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for index, (one, other) in enumerate(zip(new, old, strict=True)):
            yield from _changed(one, other, f"{path}[{index}]")
    else:
        yield path
