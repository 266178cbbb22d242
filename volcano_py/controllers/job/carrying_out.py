"""Carries out the plan of a job: status, events, objects of plugins, PodGroup, kills and creations, in this order.

What a write answers goes into the record of the job at once. So the next look sees it even if the watch is late.
"""

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
import structlog

from volcano_py.api import keys
from volcano_py.api.batch import Job, Task
from volcano_py.api.meta import ObjectMeta
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.answers import Named, read_answer
from volcano_py.controllers.controller import ControllerContext
from volcano_py.controllers.job import acting, objects, phases
from volcano_py.controllers.job import status as statuses
from volcano_py.controllers.job.existence import exists, was_not_found
from volcano_py.controllers.job.leaving import Leaving
from volcano_py.controllers.job.many import each, each_in_turn
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.observed import JobPlan, Problem
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject, PluginProblem
from volcano_py.controllers.job.plugins.key_pair import generate_key_pair
from volcano_py.controllers.job.record import Record, take_answered
from volcano_py.controllers.job.unseen import Created
from volcano_py.controllers.writes import REFUSED_FOR_GOOD, Create, Delete, Patch, Write, says_it_stays
from volcano_py.kube import errors
from volcano_py.kube.resource import COMMANDS, PERSISTENT_VOLUME_CLAIMS, PODGROUPS, PODS, VCJOBS

log = structlog.get_logger()

EVENT_CREATE: Final = "FailedCreate"
EVENT_PLUGIN: Final = "PluginError"
_TIMEOUT_S: Final = 10.0
_LASTING: Final = (errors.Forbidden, errors.Invalid, errors.BadRequest, errors.Conflict, errors.NotFound, PluginProblem)
"""Reasons why a pod cannot be created that do not go away by themselves; users are told."""

T = TypeVar("T")


class _NotYet(errors.Conflict):
    """A write waits for another object to go, or for the watch to show what is gone, which needs nobody's help."""


class _Collision(errors.Conflict):
    """An object has the name of one that a job needs, and belongs to somebody else."""


_REFUSALS: Final = (*REFUSED_FOR_GOOD, errors.NotFound, _Collision)
"""Reasons why an object cannot be written that do not go away by themselves."""


_EVENTS_OF_REFUSALS: Final = {
    PODGROUPS.kind: "PodGroupError",
    PERSISTENT_VOLUME_CLAIMS.kind: "PVCError",
    VCJOBS.kind: EVENT_CREATE,
}
"""By the kind of what was refused; other objects are those of plugins."""


class CarryOut:
    """Carries out plans."""

    def __init__(self, context: ControllerContext, put_job: Callable[[Job], bool]) -> None:
        self._client = context.client
        self._writer = context.writer
        self._events = context.events
        self._metrics = context.metrics
        self._clock = context.clock
        self._rng = context.rng
        self._put_job = put_job
        self._leaving = Leaving(context)

    def job_gone(self, key: str) -> None:
        """Forget what metrics say about a job."""
        self._metrics.job_gone(key)

    async def __call__(self, record: Record, plan: JobPlan) -> None:
        """Carry out a plan; raise ApiError if a part of it failed, and the next look plans the rest."""
        if plan.status is not None:
            await self._write_status(record, plan)
            if record.job is None or record.gone:
                return
        record.armed.arm(plan.arm)
        for event in plan.events:
            self._events.record(event)
        record.told = plan.told or record.told
        if record.doubtful and (plan.create or any(isinstance(write, Create) for write in plan.writes)):
            if not await self._exists_beyond_doubt(record):
                return
            if record.applied.forget_all():  # first, the next look writes again what pods need
                plan = dataclasses.replace(plan, create=())
        await self._write_what_pods_need(record, plan)
        if record.job is None:
            return
        if plan.remove:
            await each(plan.remove, lambda one: self._remove(record, one))
            record.applied.note_removed()
        await self._leaving.delete(record, record.job, plan)
        if not record.gone:
            await self._create_pods(record, plan.create)
        if plan.keep and record.job is not None:
            await self._leaving.keep(record, record.job, plan.keep)
        # Until the pods are killed, whatever asked for that must ask again.
        armed = {one.key for one in plan.arm}
        record.armed.disarm(key for key in plan.disarm if key not in armed)
        take_answered(record, plan.handled)

    async def _exists_beyond_doubt(self, record: Record) -> bool:
        """Ask for the job before anything of it is made again; return whether it is there.

        The garbage collector deletes what belongs to a deleted job. While the watch on jobs is broken, that is all that
        one sees of the deletion, and whatever is made again, it deletes again.
        """
        job = record.job
        assert job is not None
        there = await exists(self._client, job)
        record.doubtful = False
        if not there:
            record.gone, record.job = True, None  # the watch will say so, too
        return there

    async def _write_what_pods_need(self, record: Record, plan: JobPlan) -> None:
        """Write the objects of plugins, claims and the PodGroup; if one is refused, the job will say why.

        Nothing more is written once the deletion of the job has been seen.
        """
        what = ""
        try:
            for one in plan.ensure:
                if _is_deleted(record):
                    return
                what = f"{one.resource.kind} {one.body['metadata']['name']}"
                await self._ensure(record, one)
            for write in plan.writes:
                if _is_deleted(record):
                    return
                what = "" if isinstance(write, Delete) else f"{write.resource.kind} {_name_of(write)}"
                await self._write(record, write)
        except _REFUSALS as error:
            if what:
                self._note_refusal(record, what, error)
            raise
        if what:
            record.refusal = None

    def _note_refusal(self, record: Record, what: str, error: errors.ApiError) -> None:
        job = record.job
        if job is None or isinstance(error, _NotYet | errors.NamespaceTerminating):
            return
        record.refusal = Problem("FailedCreate", f"{what} could not be written: {error}")
        if not isinstance(error, _Collision):  # that has an event of its own
            reason = _EVENTS_OF_REFUSALS.get(what.partition(" ")[0], EVENT_PLUGIN)
            self._events.record(acting.event(job, keys.EVENT_WARNING, reason, record.refusal.message))

    # Status and single objects

    async def _write_status(self, record: Record, plan: JobPlan) -> None:
        job = record.job
        assert job is not None
        assert plan.status is not None
        answer = await self._writer.answered(statuses.patch(job, plan.status))
        record.written_at = self._clock.monotonic()
        if answer is None:
            await was_not_found(self._client, record, job)
            return
        read_answer(answer, Job, self._put_job)
        before, after = job.status.state.phase, plan.status.state.phase
        if before != after:
            log.info(
                "job changes its phase",
                job=f"{job.metadata.namespace}/{job.metadata.name}",
                before=before,
                phase=after,
                reason=plan.status.state.reason,
            )
            if after == phases.RESTARTING:
                record.applied.forget_all()  # somebody may have deleted what pods are about to need again
            self._metrics.job_phase(f"{job.metadata.namespace}/{job.metadata.name}", job.spec.queue, after)

    async def _write(self, record: Record, write: Write) -> None:
        if isinstance(write, Delete) and write.resource is COMMANDS:
            await self._delete_command(record, write)
            return
        before = "" if record.group is None else record.group.metadata.resource_version
        answer = await self._writer.answered(write)
        if isinstance(write, Delete):
            record.remove_group(write.uid, answered=True)
        elif answer and write.resource is PODGROUPS:
            if isinstance(write, Patch):
                self._note_unheeded(record, write, answer, before)
            read_answer(answer, PodGroup, lambda group: record.put_group(group, self._clock.monotonic()))
        elif write.resource is VCJOBS and answer:
            read_answer(answer, Job, self._put_job)
        elif write.resource is VCJOBS and record.job is not None:
            await was_not_found(self._client, record, record.job)
        elif isinstance(write, Create) and write.resource is PODGROUPS:
            await self._adopt_group(record, write)
        elif isinstance(write, Patch) and write.resource is PODGROUPS:
            path = PODGROUPS.item(write.name, write.namespace)
            raise _NotYet("patch", path, "it is gone, and the watch still shows it")
        elif isinstance(write, Create) and answer is None:  # it may be that of an earlier job: the watch will tell
            raise _NotYet("create", write.resource.label, "a claim of that name exists, and the watch does not show it")

    async def delete_answered(self, record: Record) -> None:
        """Try again to delete a Command that was answered, if it is time."""
        if (delete := record.commands.due(self._clock.monotonic())) is not None:
            await self._delete_command(record, delete)

    async def _delete_command(self, record: Record, delete: Delete) -> None:
        """Delete a Command that was answered; if that is refused, the job goes on without it."""
        try:
            await self._writer.answered(delete)
        except REFUSED_FOR_GOOD as error:
            log.warning("command cannot be deleted", command=f"{delete.namespace}/{delete.name}", error=str(error))
            tells = record.commands.was_refused(delete, self._clock.monotonic(), self._rng)
            if tells and record.job is not None:
                text = says_it_stays(delete, "job", error)
                self._events.record(acting.event(record.job, keys.EVENT_WARNING, acting.EVENT_COMMAND, text))
        else:
            record.commands.was_deleted(delete)

    def _note_unheeded(self, record: Record, write: Patch, answer: bytes, before: str) -> None:
        """Note a patch of the PodGroup that changed nothing: its version is still the one before."""

        def note(group: Named) -> None:
            if group.metadata.resource_version != before:
                return
            record.unheeded = write.body["spec"]
            log.warning(
                "the API server does not keep fields of a PodGroup: install the definitions of this version",
                group=f"{write.namespace}/{write.name}",
                fields=sorted(record.unheeded),
            )

        read_answer(answer, Named, note)

    async def _adopt_group(self, record: Record, write: Create) -> None:
        """Take the PodGroup that exists already, unless it is about to go."""
        assert isinstance(write.body, dict)
        name = write.body["metadata"]["name"]
        path = PODGROUPS.item(name, write.namespace)
        try:
            group = await self._client.get(PODGROUPS, name, PodGroup, namespace=write.namespace, timeout_s=_TIMEOUT_S)
        except errors.NotFound:
            text = "its predecessor has just gone, or its namespace is being deleted"
            raise _NotYet("create", path, text) from None
        if group.metadata.deletion_timestamp is not None:
            raise _NotYet("create", path, "its predecessor is being deleted")
        record.exists(group.metadata.uid)
        record.put_group(group, self._clock.monotonic())

    # Objects of plugins

    async def _ensure(self, record: Record, wanted: PluginObject) -> None:
        job = record.job
        assert job is not None
        meta = job.metadata
        name = str(wanted.body["metadata"]["name"])
        planned = wanted  # the job may change meanwhile, and then the next look wants something else
        if await self._follow(record, wanted, meta.namespace, name):
            return
        existing = None
        if wanted.keep:
            existing = await self._find(wanted, meta.namespace, name)
            if existing is None:
                wanted = await self._with_keys(record, job, wanted)
                if _is_deleted(record):
                    return
        if existing is None:
            body = _owned(wanted.body, job)
            answer = await self._writer.answered(Create(wanted.resource, meta.namespace, body))
            if answer is not None:
                read_answer(answer, Named, lambda made: record.applied.note(planned, made.metadata.uid))
                return
            existing = await self._find(wanted, meta.namespace, name)
        if existing is None or objects.owner_in(existing) != meta.uid:
            raise self._name_taken(job, wanted, name, existing)
        if changes := _changes(wanted, existing):
            body = {"metadata": {"uid": existing["metadata"]["uid"]}, **changes}
            await self._writer.answered(Patch(wanted.resource, meta.namespace, name, body))
        record.applied.note(planned, existing["metadata"]["uid"])

    async def _follow(self, record: Record, wanted: PluginObject, namespace: str, name: str) -> bool:
        """Change an object that this process has written; return False if it has not, or the object is gone."""
        known = record.applied.last(wanted)
        if known is None:
            return False
        changes = _changes(wanted, msgspec.json.decode(known.fields))
        body = {"metadata": {"uid": known.uid}, **changes}
        record.applied.forget(wanted)  # if no answer comes, nobody knows how it is
        try:
            answer = await self._writer.answered(Patch(wanted.resource, namespace, name, body))
        except errors.Conflict:  # another object has its name now
            answer = None
        if answer is None:
            return False
        record.applied.note(wanted, known.uid)
        return True

    async def _with_keys(self, record: Record, job: Job, wanted: PluginObject) -> PluginObject:
        """Return the object with generated keys; they are made outside of the event loop, since that takes long."""
        pair: KeyPair | None = None
        if record.plugins.needs_key_pair:
            async with asyncio.timeout(60):
                pair = await asyncio.to_thread(generate_key_pair)
        try:
            found = record.plugins.objects(job, pair)
        except PluginProblem as problem:
            raise errors.Invalid("create", wanted.resource.label, str(problem)) from problem
        name = wanted.body["metadata"]["name"]
        for one in found:
            if one.resource is wanted.resource and one.body["metadata"]["name"] == name:
                return one
        text = "the plugins of the job have changed meanwhile"
        raise _NotYet("create", wanted.resource.item(name, job.metadata.namespace), text)

    async def _find(self, wanted: PluginObject, namespace: str, name: str) -> dict[str, Any] | None:
        try:
            return await self._client.get(
                wanted.resource, name, dict[str, Any], namespace=namespace, timeout_s=_TIMEOUT_S
            )
        except errors.NotFound:
            return None

    def _name_taken(self, job: Job, wanted: PluginObject, name: str, by: dict[str, Any] | None) -> errors.ApiError:
        path = wanted.resource.item(name, job.metadata.namespace)
        meta = None if by is None else msgspec.convert(by["metadata"], ObjectMeta)
        if meta is None or objects.will_go(meta, job.metadata, self._clock.now()):
            return _NotYet("create", path, "its predecessor is being deleted")
        text = objects.name_taken(meta, f"{wanted.resource.kind} {job.metadata.namespace}/{name}", held_by="")
        self._events.record(acting.event(job, keys.EVENT_WARNING, EVENT_PLUGIN, text))
        return _Collision("create", path, text)

    async def _remove(self, record: Record, one: PluginObject) -> None:
        job = record.job
        assert job is not None
        name, namespace = str(one.body["metadata"]["name"]), job.metadata.namespace
        existing = await self._find(one, namespace, name)
        if existing is not None and objects.owner_in(existing) == job.metadata.uid:
            await self._writer.write(Delete(one.resource, namespace, name, existing["metadata"]["uid"]))

    # Pods

    async def _create_pods(self, record: Record, wanted: tuple[tuple[Task, tuple[int, ...]], ...]) -> None:
        job = record.job
        if not wanted or job is None:
            return
        forwarded = job.metadata.annotations.get(keys.JOB_FORWARDING) == "true"

        async def create(one: tuple[Task, int], turn: int) -> None:
            if record.gone or record.job is None or record.job.metadata.generation != job.metadata.generation:
                return  # the next look knows what is wanted now
            task, index = one
            body = record.pod_factory(task.name, forwarded).pod(index)
            record.plugins.customize(body, job, task, index)
            created = Create(PODS, job.metadata.namespace, body)
            answer = await self._writer.answered(created, turn)
            if answer is not None:
                self._measure_creation(job)
                read_answer(answer, JobPod, lambda pod: record.put_pod(pod, self._clock.monotonic()))
            else:
                await self._adopt_pod(record, job, body["metadata"]["name"], one)

        pods = ((task, index) for task, indices in wanted for index in indices)
        try:
            await each_in_turn(self._writer, pods, create, first_alone=record.creation_failed)
        except (errors.ApiError, PluginProblem) as error:
            record.creation_failed = True
            if not isinstance(error, _LASTING) or isinstance(error, _NotYet):
                raise
            text = f"a pod could not be created: {error}"
            record.problem = Problem("FailedCreate", text)
            self._events.record(acting.event(job, keys.EVENT_WARNING, EVENT_CREATE, text))
            if isinstance(error, PluginProblem):
                raise errors.Invalid("create", PODS.label, str(error)) from error
            raise
        record.problem = record.refusal = None
        record.creation_failed = False

    def _measure_creation(self, job: Job) -> None:
        created = job.metadata.creation_timestamp
        if created is not None:
            self._metrics.pod_created((self._clock.now() - created).total_seconds())

    async def _adopt_pod(self, record: Record, job: Job, name: str, wanted: tuple[Task, int]) -> None:
        """Take the pod that exists already if it is ours and the one that is wanted, and wait if it is about to go."""
        namespace = job.metadata.namespace
        try:
            pod = await self._client.get(PODS, name, JobPod, namespace=namespace, timeout_s=_TIMEOUT_S)
        except errors.NotFound:
            text = "its predecessor has just gone, or its namespace is being deleted"
            raise _NotYet("create", PODS.item(name, namespace), text) from None
        if objects.owner_of(pod.metadata) == job.metadata.uid:
            record.exists(pod.metadata.uid)
            if not record.put_pod(pod, self._clock.monotonic()) and record.members.get(name) is None:
                text = f"it exists without the label {keys.JOB_NAME}: give it the label again, or delete it"
                raise errors.Conflict("create", PODS.item(name, namespace), text)
            task, index = wanted
            if (member := record.members.get(name)) is not None and (member.task, member.index) != (task.name, index):
                text = (
                    f"it exists and says that it is pod {member.index} of task {member.task!r}: correct its label "
                    f"{keys.TASK_INDEX} and its annotation {keys.TASK_SPEC}, or delete it"
                )
                raise errors.Conflict("create", PODS.item(name, namespace), text)
            return
        if objects.will_go(pod.metadata, job.metadata, self._clock.now()):
            raise _NotYet("create", PODS.item(name, namespace), "a pod of that name still terminates")
        raise errors.Conflict("create", PODS.item(name, namespace), objects.name_taken(pod.metadata))

    async def confirm(self, record: Record) -> None:
        """Read again what was created and is overdue in the watch: somebody may have deleted it since."""
        job = record.job
        if job is None:
            return
        namespace = job.metadata.namespace

        async def confirm(one: Created) -> None:
            try:
                found = await self._client.get(
                    one.resource, one.name, dict[str, Any], namespace=namespace, timeout_s=_TIMEOUT_S
                )
                there = found["metadata"]["uid"] == one.uid
            except errors.NotFound:
                there = False
            if there:
                record.unseen.exists(one, self._clock.monotonic())
            elif one.resource is PODS:
                record.remove_pod(one.name, one.uid, answered=True)
            else:
                record.remove_group(one.uid, answered=True)

        await each(record.unseen.overdue(self._clock.monotonic()), confirm)


def _is_deleted(record: Record) -> bool:
    job = record.job
    return record.gone or job is None or job.metadata.deletion_timestamp is not None


def _name_of(write: Write) -> str:
    if not isinstance(write, Create):
        return write.name
    return str(write.body["metadata"]["name"]) if isinstance(write.body, dict) else ""


def _owned(body: Any, job: Job) -> dict[str, Any]:
    meta = job.metadata
    owner = objects.owner_reference(meta.name, meta.uid)
    return {**body, "metadata": {**body["metadata"], "namespace": meta.namespace, "ownerReferences": [owner]}}


def _changes(wanted: PluginObject, existing: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that follow the job and differ, as a merge patch; keys that are kept stay as they are."""
    found: dict[str, Any] = {}
    for name in wanted.follow:
        now, new = existing.get(name) or {}, wanted.body.get(name) or {}
        if isinstance(now, dict) and isinstance(new, dict):
            now = {key: value for key, value in now.items() if key not in wanted.keep}
            new = {key: value for key, value in new.items() if key not in wanted.keep}
            if change := statuses.difference(now, new):
                found[name] = change
        elif now != new:
            found[name] = new
    return found
