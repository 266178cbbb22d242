"""A job, its objects as an API server has them, and the job controller without its I/O.

`World.look` takes one look and carries its plan out at once, as `carrying_out` does with requests. Pods change only
when a test says so.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tests.controllers.job.builders import NOW, a_job_pod_body, a_job_task, a_vcjob
from volcano_py.api import keys
from volcano_py.api.batch import Command, Job
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.controllers.job import decision
from volcano_py.controllers.job.acting import EVENT_ACTION
from volcano_py.controllers.job.members import Member
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.observed import JobPlan, Observed, Problem
from volcano_py.controllers.job.plugins.contract import PluginObject
from volcano_py.controllers.job.plugins.registry import BUILT_IN
from volcano_py.controllers.job.record import Record, take_answered
from volcano_py.controllers.job.volumes import Claim
from volcano_py.controllers.writes import Create, Delete, JsonPatch, Patch, Write
from volcano_py.kube.resource import COMMANDS, PERSISTENT_VOLUME_CLAIMS, PODGROUPS, VCJOBS
from volcano_py.model.decisions import RecordEvent


class World:
    """One job and everything that belongs to it."""

    def __init__(self, job: Job) -> None:
        self.now = NOW
        self.version = 100  # the last resourceVersion
        self.job = job
        self.pods: dict[str, dict[str, Any]] = {}
        self.group: dict[str, Any] | None = None
        self.queues = {"default"}
        self.priorities: dict[str, int] = {}
        self.claims: dict[str, Claim] = {}
        self.commands: dict[str, Command] = {}
        self.objects: dict[str, PluginObject] = {}
        self.events: list[RecordEvent] = []
        self.phases: list[str] = []
        self.writes = 0
        self.uids = 0
        self.restart()

    # The controller

    def restart(self) -> None:
        """Let another process take over: it knows only what the API server has. Pods are seen before the job."""
        self.record = Record(self.job.metadata.uid, BUILT_IN)
        for body in self.pods.values():
            self.record.put_pod(msgspec.convert(body, JobPod))
        if self.group is not None:
            self.record.put_group(msgspec.convert(self.group, PodGroup))
        for name, command in self.commands.items():
            self.record.commands.put(f"{command.metadata.namespace}/{name}", command)
        self._seen_job()

    def look(self) -> JobPlan:
        """Look once, and carry the plan out."""
        plan = decision.plan(self.observe(), self.now)
        self._carry_out(plan)
        return plan

    def settle(self) -> None:
        """Look until nothing is left to do at this moment."""
        for _ in range(100):
            if not self.look().again:
                return
        raise AssertionError("the job does not come to rest")

    def observe(self) -> Observed:
        """Return what the controller sees."""
        record = self.record
        record.start()
        job = record.job
        assert job is not None
        problem, wanted = record.problem, ()
        try:
            wanted = record.plugin_objects()
        except Problem as found:
            problem = found
        queue = {"metadata": {"name": job.spec.queue}}
        return Observed(
            job=job,
            members=record.members,
            group=record.group,
            queue=msgspec.convert(queue, Queue) if job.spec.queue in self.queues else None,
            priorities=self.priorities,
            claims=self.claims,
            commands=record.commands.in_turn(),
            triggers=tuple(record.triggers),
            due=record.armed.due(self.now),
            delayed=record.armed.by_key,
            objects=wanted,
            outdated=record.applied.outdated(wanted),
            removed=record.applied.removed,
            told=record.told,
            problem=problem,
            written_ago_s=(self.now - NOW).total_seconds() - record.written_at,
        )

    # What others do

    def starts(self, phase: str = "Inqueue") -> None:
        """Let the job create its PodGroup and, once the scheduler lets that in, its pods."""
        self.settle()
        self.group_is(phase)
        self.settle()

    def runs(self) -> None:
        """Let the job start, and all its pods run."""
        self.starts()
        for name in list(self.pods):
            self.pod_is(name, "Running")
        self.settle()

    def group_is(self, phase: str, *conditions: Mapping[str, Any]) -> None:
        """Change the phase of the PodGroup."""
        assert self.group is not None
        self.group = {**self.group, "status": {"phase": phase, "conditions": list(conditions)}}
        self._stamp(self.group)
        self.record.put_group(msgspec.convert(self.group, PodGroup))

    def pod_is(self, name: str, phase: str, exit_code: int | None = None, restarts: int = 0, **fields: Any) -> None:
        """Change the status of a pod."""
        ended = self.now if phase in ("Succeeded", "Failed") else None
        written = a_job_pod_body("train-x-0", phase, exit_code=exit_code, restarts=restarts, ended=ended, **fields)
        self.pods[name]["status"] = written["status"]
        self._seen_pod(name)

    def pod_goes(self, name: str) -> None:
        """Let a pod vanish."""
        uid = self.pods.pop(name)["metadata"]["uid"]
        self.record.remove_pod(name, uid)

    def terminated_go(self) -> None:
        """Let every pod vanish that is being deleted."""
        for name in self.terminating():
            self.pod_goes(name)

    def terminating(self) -> list[str]:
        """Return the pods that are being deleted."""
        return sorted(name for name, body in self.pods.items() if body["metadata"].get("deletionTimestamp"))

    def alive(self) -> list[str]:
        """Return the other pods."""
        return sorted(self.pods.keys() - set(self.terminating()))

    def uid_of(self, name: str) -> str:
        """Return the uid of a pod."""
        return str(self.pods[name]["metadata"]["uid"])

    def asks(self, command: Command) -> None:
        """Create a Command for the job."""
        self.commands[command.metadata.name] = command
        meta = command.metadata
        self.record.commands.put(f"{meta.namespace}/{meta.name}", command)

    def edits(self, **spec: Any) -> None:
        """Change the spec of the job."""
        meta = self.job.metadata
        self.job = msgspec.structs.replace(
            self.job,
            metadata=msgspec.structs.replace(meta, generation=meta.generation + 1),
            spec=msgspec.convert({**msgspec.to_builtins(self.job.spec), **spec}, type(self.job.spec)),
        )
        self._seen_job()

    def waits(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    # What stands on the job

    @property
    def phase(self) -> str:
        """The phase of the job."""
        return self.job.status.state.phase

    def told(self, reason: str) -> list[str]:
        """Return the messages of the events with a reason."""
        return [event.message for event in self.events if event.reason == reason]

    # Carrying out

    def _carry_out(self, plan: JobPlan) -> None:
        record = self.record
        if plan.status is not None:
            self.writes += 1
            before = self.phase
            self.job = msgspec.structs.replace(self.job, status=plan.status)
            self._seen_job()
            record.written_at = (self.now - NOW).total_seconds()
            if self.phase != before:
                self.phases.append(self.phase)
        record.armed.arm(plan.arm)
        armed = {one.key for one in plan.arm}
        record.armed.disarm(key for key in plan.disarm if key not in armed)
        self.events += plan.events
        record.told = plan.told or record.told
        for one in plan.ensure:
            self.writes += 1
            self.objects[f"{one.resource.kind} {one.body['metadata']['name']}"] = one
            record.applied.note(one, "uid")
        for write in plan.writes:
            self.writes += 1
            self._write(write)
        if plan.remove:
            self.objects.clear()
            record.applied.note_removed()
        for member in plan.kill:
            self._delete(member, killed=True)
        for member in plan.delete:
            self._delete(member, killed=False)
        for task, indices in plan.create:
            for index in indices:
                self._create(record.pod_factory(task.name, False).pod(index))
        take_answered(record, plan.handled)

    def _write(self, write: Write) -> None:
        record = self.record
        match write:
            case Create() if write.resource is PODGROUPS:
                assert self.group is None, "a PodGroup is created twice"
                body = write.body
                assert isinstance(body, dict)
                self.uids += 1
                self.group = {**body, "metadata": {**body["metadata"], "uid": f"uid-group-{self.uids}"}}
            case Create() if write.resource is PERSISTENT_VOLUME_CLAIMS:
                assert isinstance(write.body, dict)
                self.claims[f"{write.namespace}/{write.body['metadata']['name']}"] = msgspec.convert(write.body, Claim)
                return
            case Patch() if write.resource is PODGROUPS:
                assert self.group is not None
                self.group = merged(self.group, write.body)
            case Delete() if write.resource is PODGROUPS:
                assert self.group is not None
                assert self.group["metadata"]["uid"] == write.uid
                self.group = None
                record.remove_group(write.uid)
                return
            case Delete() if write.resource is COMMANDS:
                del self.commands[write.name]
                record.commands.was_deleted(write)
                return
            case JsonPatch() if write.resource is VCJOBS:
                self._name_claims(write)
                return
            case _:
                raise AssertionError(f"unexpected write {write}")
        if self.group is not None:
            self._stamp(self.group)
            record.put_group(msgspec.convert(self.group, PodGroup))

    def _name_claims(self, write: JsonPatch) -> None:
        volumes = msgspec.to_builtins(self.job.spec.volumes)
        assert write.operations[0]["value"] == self.job.metadata.resource_version
        for operation in write.operations[1:]:
            _, _, _, index, field = operation["path"].split("/")
            volumes[int(index)][field] = operation["value"]
        self.edits(volumes=volumes)

    def _create(self, body: dict[str, Any]) -> None:
        name = body["metadata"]["name"]
        assert name not in self.pods, f"pod {name} is created twice"
        self.writes += 1
        self.uids += 1
        meta = {**body["metadata"], "uid": f"uid-{name}-{self.uids}", "creationTimestamp": self.now}
        self.pods[name] = {**body, "metadata": meta, "status": {"phase": "Pending"}}
        self._seen_pod(name)

    def _delete(self, member: Member, *, killed: bool) -> None:
        member.killed = True
        meta = self.pods[member.name]["metadata"]
        assert meta["uid"] == member.uid
        assert not meta.get("deletionTimestamp"), f"pod {member.name} is deleted twice"
        self.writes += 2 if killed else 1
        meta["deletionTimestamp"] = self.now
        if killed:
            meta["annotations"] = {**meta["annotations"], keys.OUT_OF_SYNC: "true"}
        self.record.members.mark_deleting(member.name, member.uid)
        self._seen_pod(member.name)

    # What the controller sees

    def _seen_job(self) -> None:
        meta = msgspec.structs.replace(self.job.metadata, resource_version=self._next_version())
        self.job = msgspec.structs.replace(self.job, metadata=meta)
        self.record.put_job(self.job, keys.SCHEDULER_NAME, keys.DEFAULT_QUEUE)

    def _seen_pod(self, name: str) -> None:
        self._stamp(self.pods[name])
        self.record.put_pod(msgspec.convert(self.pods[name], JobPod))

    def _stamp(self, body: dict[str, Any]) -> None:
        body["metadata"] = {**body["metadata"], "resourceVersion": self._next_version()}

    def _next_version(self) -> str:
        self.version += 1
        return str(self.version)


def merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object after a merge patch (RFC 7386)."""
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            before = result.get(name)
            result[name] = merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def later(seconds: float) -> datetime:
    """Return the moment so many seconds after the beginning of a `World`."""
    return NOW + timedelta(seconds=seconds)


def running(*policies: Any, task: Any = None, **spec: Any) -> World:
    """Return a job of three pods that runs."""
    world = World(a_vcjob(task or a_job_task(replicas=3), policies=list(policies), **spec))
    world.runs()
    return world


def restarted(world: World) -> None:
    """Let killed pods go, and new ones start and run."""
    world.terminated_go()
    world.settle()
    world.group_is("Inqueue")
    world.settle()
    for name in world.alive():
        if world.pods[name]["status"]["phase"] == "Pending":
            world.pod_is(name, "Running")
    world.settle()


def numbers(world: World) -> tuple[int, int]:
    """Return version and retryCount."""
    return world.job.status.version, world.job.status.retry_count


def done(world: World) -> list[str]:
    """Return the messages about executed actions."""
    return world.told(EVENT_ACTION)
