"""The job controller: watches jobs, pods, PodGroups and Commands, and carries out the plans of `decision.plan`."""

import contextlib
from collections.abc import Iterable
from typing import Final

from volcano_py.api import keys
from volcano_py.api.batch import Command, Job
from volcano_py.api.scheduling import PodGroup, PriorityClass
from volcano_py.controllers.controller import UNSERVED_S, ControllerContext
from volcano_py.controllers.job import acting, decision, objects
from volcano_py.controllers.job.carrying_out import CarryOut
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.observed import Observed, Problem
from volcano_py.controllers.job.plugins.contract import PluginObject
from volcano_py.controllers.job.plugins.registry import load_table
from volcano_py.controllers.job.record import Record, back_again
from volcano_py.controllers.job.volumes import Claim
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Delete
from volcano_py.kube import errors
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import COMMANDS, PERSISTENT_VOLUME_CLAIMS, PODS, VCJOBS
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.runtime.supervisor import Supervisor

EVENT_PLUGIN: Final = "PluginError"
EVENT_STATUS: Final = "JobStatusError"
_LOOKS_AT_ONCE: Final = 50  # then other jobs get a turn
_PAUSES_S: Final = (0.0, 0.1, 1.0, 10.0)
"""How long a job waits after so many looks at once that all asked for another one; the last one again and again."""
_JOB_ENDS_S: Final = 5.0  # the same for a job that is being deleted, which finalizers may hold for long
_JOB_SHOWS_S: Final = 0.2  # after this time, a Command looks again whether the watch shows its job
_COMMAND: Final = "command:"  # prefix of the keys of Commands whose job is not known


class JobController:
    """Runs jobs."""

    name: Final = "job-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._writer = context.writer
        self._events = context.events
        self._clock = context.clock
        self._options = options = context.options
        self._served = context.served
        table = load_table()
        self._plugins = table.factories
        self._plugin_problems = table.problems
        self._records: dict[str, Record] = {}  # by `objects.key_of` the job
        self._keys: dict[str, str] = {}  # job namespace/name -> key of its record
        self._stuck: set[str] = set()  # keys of jobs that wait for something that does not exist
        self._restless: dict[str, int] = {}  # how often in a row many looks at a job have all asked for another one
        self._queues = context.queues
        self._claims: View[Claim] = View()
        self._priorities: dict[str, int] = {}
        self._removed: set[str] = set()  # keys of jobs that the watch has removed, and of which something is left
        self._early: dict[str, dict[str, Command]] = {}  # Commands whose job is not known, by namespace/name of that
        self._commands: View[Command] = View(_is_for_a_job)
        self._queue: WorkQueue[str] = WorkQueue(
            self.name,
            self._reconcile,
            options.work_queue(options.job_workers),
            clock=context.clock,
            rng=context.rng,
            refill=self._all,
            on_given_up=self._report_failure,
            observe=context.metrics.turn,
            outage=context.client.outage,
            describe=self._describe,
        )
        self._carry_out = CarryOut(context, self._take_answer)
        context.jobs.subscribe(self._job_changed)
        self._commands.subscribe(self._command_changed)
        context.classes.subscribe(self._class_changed)
        self._queues.subscribe(self._something_appeared)
        context.excuses.subscribe(self._queue.excuse)
        self._claims.subscribe(self._claim_changed)
        context.groups.subscribe(self._group_changed)

    def watch(self, informers: Informers) -> None:
        """Add the informers of the objects that this controller needs in addition to PodGroups and jobs."""
        informers.add(PODS, JobPod, _Pods(self), name="pods of jobs", label_selector=keys.JOB_NAME)
        informers.add(PERSISTENT_VOLUME_CLAIMS, Claim, self._claims)
        informers.add(COMMANDS, Command, self._commands, name="commands for jobs", optional=True)

    def start(self, supervisor: Supervisor) -> None:
        """Start to reconcile; until then, changes are only collected."""
        self._queue.start(supervisor)

    def backlog(self) -> int:
        """Return how many jobs wait in the work queue or are being reconciled."""
        return self._queue.overdue

    # Changes

    def _job_changed(self, key: str, before: Job | None, after: Job | None) -> None:
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self._job_gone(key, objects.key_of(before.metadata))
        if after is not None and self._put_job(after, shown=True):
            self._queue.add(objects.key_of(after.metadata))

    def _job_gone(self, name: str, key: str) -> None:
        if self._keys.get(name) == key:
            del self._keys[name]
        self._stuck.discard(key)
        self._restless.pop(key, None)
        if (record := self._records.get(key)) is not None:
            record.gone = True
            for command in record.commands:  # nobody else would delete them; they wait as long as the API server asked
                self._queue.add_later(f"{_COMMAND}{command}", self._queue.pause_s(key))
            self._removed.add(key)
            self._forgotten(record)
            self._carry_out.job_gone(name)

    def pod_changed(self, pod: JobPod, owner: str) -> bool:
        """Take a state of a pod from the watch; return whether its job needs a look."""
        return self._record(owner).put_pod(pod)

    def pod_gone(self, name: str, uid: str, owner: str) -> bool:
        """Take that a pod is gone; return whether its job needs a look."""
        record = self._records.get(owner)
        return record is not None and record.remove_pod(name, uid) and not self._forgotten(record)

    def look_at(self, keys: Iterable[str]) -> None:
        """Ask for a look at jobs."""
        for key in keys:
            self._queue.add(key)

    def _put_job(self, job: Job, *, shown: bool = False) -> bool:
        """Take a state of a job; ``shown`` says that the watch shows it."""
        meta, key = job.metadata, objects.key_of(job.metadata)
        if shown and key in self._removed:
            self._removed.discard(key)
            self._records[key] = back_again(self._records[key])
        self._keys[f"{meta.namespace}/{meta.name}"] = key
        record = self._record(key)
        if record.job is None:
            self._take_early_commands(record, job)
        return record.put_job(job, self._options.scheduler_names[0], self._options.default_queue)

    def _take_answer(self, job: Job) -> bool:
        """Take the state of a job that a write answered, unless the watch has shown its end meanwhile."""
        record = self._records.get(objects.key_of(job.metadata))
        return record is not None and not record.gone and self._put_job(job)

    def _describe(self, key: str) -> str:
        """Name a job in the log."""
        record = self._records.get(key)
        if record is None or record.job is None:
            namespace, _, uid = key.partition("/")
            return f"the job with uid {uid} in namespace {namespace}"
        return f"{record.job.metadata.namespace}/{record.job.metadata.name}"

    def _record(self, key: str) -> Record:
        found = self._records.get(key)
        if found is None:
            found = self._records[key] = Record(key, self._plugins)
        return found

    def _group_changed(self, _: str, before: PodGroup | None, after: PodGroup | None) -> None:
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            owner = objects.owner_key(before.metadata)
            record = self._records.get(owner)
            if record is not None and record.remove_group(before.metadata.uid) and not self._forgotten(record):
                record.doubtful = True
                self._queue.add(owner)
        owner = "" if after is None else objects.owner_key(after.metadata)
        if after is not None and owner and self._record(owner).put_group(after):
            self._queue.add(owner)

    def _is_over(self, record: Record) -> bool:
        """Say whether the job has gone meanwhile, and forget it if nothing of it is left."""
        return record.gone and self._forgotten(record)

    def _forgotten(self, record: Record) -> bool:
        """Forget a job once it and all that was seen of it are gone; return whether that is so."""
        if (record.job is not None and not record.gone) or len(record.members) or record.group is not None:
            return False
        self._records.pop(record.key, None)
        self._removed.discard(record.key)
        return True

    def _command_changed(self, key: str, before: Command | None, after: Command | None) -> None:
        if after is not None and after.metadata.deletion_timestamp is not None:
            after = None  # a Command that is being deleted was carried out, or nobody wants it any more
        if before is not None:
            self._forget_command(key, before, gone=after is None or after.metadata.uid != before.metadata.uid)
        if after is None:
            return
        owner = self._key_of(after)
        record = self._records.get(owner)
        if record is not None and record.job is not None:
            if record.commands.put(key, after):
                self._queue.add(owner)
            return
        self._early.setdefault(_job_of(after), {})[key] = after
        self._queue.add(f"{_COMMAND}{key}")

    def _forget_command(self, key: str, command: Command, *, gone: bool) -> None:
        """Forget the last state of a Command; if it exists in a later state, that follows."""
        early = self._early.get(_job_of(command))
        if early is not None and early.pop(key, None) is not None and not early:
            del self._early[_job_of(command)]
        record = self._records.get(self._key_of(command))
        if record is not None:
            record.commands.changes(key, gone=gone)

    def _take_early_commands(self, record: Record, job: Job) -> None:
        """Hand over the Commands that came before their job was known, all at once: the oldest is carried out first."""
        name = f"{job.metadata.namespace}/{job.metadata.name}"
        for key, command in list(self._early.get(name, {}).items()):
            if command.target.uid in ("", job.metadata.uid):
                record.commands.put(key, self._early[name].pop(key))
        if not self._early.get(name, True):
            del self._early[name]

    def _key_of(self, command: Command) -> str:
        """Return the key of the job that a Command is for, "" if there is none."""
        key = self._keys.get(_job_of(command), "")
        return key if command.target.uid in ("", key.rpartition("/")[2]) else ""

    def _class_changed(self, name: str, _: PriorityClass | None, after: PriorityClass | None) -> None:
        if after is None:
            self._priorities.pop(name, None)
        else:
            self._priorities[name] = after.value
        self._something_appeared(name, None, after)

    def _something_appeared(self, _: str, before: object, after: object) -> None:
        if before is None and after is not None:
            self.look_at(sorted(self._stuck))

    def _claim_changed(self, key: str, before: Claim | None, after: Claim | None) -> None:
        """Ask for a look at jobs that wait for a claim: it has appeared, or is gone and can be made again."""
        if before is None or after is None or after.metadata.uid != before.metadata.uid:
            self.look_at(sorted(self._stuck))

    def _all(self) -> Iterable[str]:
        return [key for key, record in self._records.items() if record.job is not None and not record.gone]

    # Reconciling

    async def _reconcile(self, key: str) -> None:
        if key.startswith(_COMMAND):
            await self._settle_command(key.removeprefix(_COMMAND))
            return
        for _ in range(_LOOKS_AT_ONCE):
            record = self._records.get(key)
            if record is None or record.job is None or record.gone or not self._served(VCJOBS):
                return
            await self._carry_out.confirm(record)
            await self._carry_out.delete_answered(record)
            self._tell_plugin_news(record)
            now = self._clock.now()
            plan = decision.plan(self._observe(record), now)
            await self._carry_out(record, plan)
            record.answered = {}  # the plan has written them
            if self._is_over(record):
                return
            self._note_problem(record)
            if not plan.again:
                break
        else:
            self._queue.add_later(key, self._pause_s(key))
            return
        self._restless.pop(key, None)
        now_s = self._clock.monotonic()
        waits = [
            plan.look_again_s,
            record.armed.next_due_s(self._clock.now()),
            record.unseen.next_overdue_s(now_s),
            record.commands.next_due_s(now_s),
        ]
        if any(wait is not None for wait in waits):
            self._queue.add_later(key, min(wait for wait in waits if wait is not None))

    def _pause_s(self, key: str) -> float:
        """Return how long a job waits whose looks all ask for another one; it counts them."""
        self._restless[key] = count = self._restless.get(key, 0) + 1
        return _PAUSES_S[min(count, len(_PAUSES_S)) - 1]

    def _observe(self, record: Record) -> Observed:
        record.start()
        job = record.job
        assert job is not None
        problem = record.refusal or record.problem
        wanted: tuple[PluginObject, ...] = ()
        try:
            wanted = record.plugin_objects()
        except Problem as found:
            problem = found
        return Observed(
            job=job,
            members=record.members,
            group=record.group,
            queue=self._queues.get(job.spec.queue),
            priorities=self._priorities,
            claims=self._claims.objects,
            commands=record.commands.in_turn(),
            answered=record.answered,
            triggers=tuple(record.triggers),
            due=record.armed.due(self._clock.now()),
            delayed=record.armed.by_key,
            objects=wanted,
            outdated=record.applied.outdated(wanted),
            removed=record.applied.removed,
            told=record.told,
            unheeded=record.unheeded,
            problem=problem,
            written_ago_s=self._clock.monotonic() - record.written_at,
        )

    def _note_problem(self, record: Record) -> None:
        if record.job is not None and record.job.status.state.reason in decision.PROBLEMS:
            self._stuck.add(record.key)
        else:
            self._stuck.discard(record.key)

    def _tell_plugin_news(self, record: Record) -> None:
        if record.job is not None:
            for text in record.news:
                self._events.record(acting.event(record.job, keys.EVENT_WARNING, EVENT_PLUGIN, text))
            record.news.clear()

    async def _settle_command(self, key: str) -> None:
        """Hand a Command to its job, or delete it if the job does not exist."""
        command = self._commands.get(key)
        if command is None or command.metadata.deletion_timestamp is not None:
            return
        if not self._served(VCJOBS):
            self._queue.add_later(f"{_COMMAND}{key}", UNSERVED_S)
            return
        owner = self._key_of(command)
        if owner and (record := self._records.get(owner)) is not None and record.job is not None:
            await self._pass_on(command, key, record, record.job)
            return
        meta = command.metadata
        job = None
        if command.target.name:  # the schema admits none
            with contextlib.suppress(errors.NotFound):
                job = await self._client.get(VCJOBS, command.target.name, Job, namespace=meta.namespace)
        if job is not None and command.target.uid in ("", job.metadata.uid):
            # The watch will show the job, or has shown its end: an answer cannot tell which.
            ends = job.metadata.deletion_timestamp is not None
            self._queue.add_later(f"{_COMMAND}{key}", _JOB_ENDS_S if ends else _JOB_SHOWS_S)
            return
        await self._writer.write(Delete(COMMANDS, meta.namespace, meta.name, meta.uid))

    async def _pass_on(self, command: Command, key: str, record: Record, job: Job) -> None:
        """Hand a Command without uid that was for the last job of that name to its successor, if it may mean that."""
        meta = command.metadata
        if key in record.commands or record.commands.has_answered(meta.uid):
            return  # it was handed over when the job appeared
        if objects.is_older(meta, job.metadata):
            text = f"Command {key} is dropped: it is older than this job, and names another one that is gone"
            self._events.record(acting.event(job, keys.EVENT_WARNING, acting.EVENT_COMMAND, text))
            await self._writer.write(Delete(COMMANDS, meta.namespace, meta.name, meta.uid))
            return
        record.commands.put(key, command)
        self._queue.add(record.key)

    def _report_failure(self, key: str, error: errors.ApiError) -> None:
        record = self._records.get(key)
        if record is not None and record.job is not None:
            text = f"{self._options.attempts} attempts failed; the next follows within a minute, or a change: {error}"
            self._events.record(acting.event(record.job, keys.EVENT_WARNING, EVENT_STATUS, text))


class _Pods:
    """Hands pods from the watch to the controller."""

    def __init__(self, controller: JobController) -> None:
        self._controller = controller
        self._known: dict[str, tuple[str, str]] = {}  # key -> uid of the pod, key of its job

    def on_events(self, events: list[Event[JobPod]]) -> None:
        """Apply changes in order; each job gets one look for all of them."""
        looks: dict[str, None] = {}
        try:
            for event in events:
                self._apply(event, looks)
        finally:  # if one pod raises, the jobs of the pods before it still need their looks
            self._controller.look_at(looks)

    def _apply(self, event: Event[JobPod], looks: dict[str, None]) -> None:
        known, controller = self._known, self._controller
        key, pod = event.key, event.object
        uid, owner = known.get(key, ("", ""))
        gone = event.type is EventType.DELETED or pod is None
        if owner and (gone or (pod is not None and pod.metadata.uid != uid)):
            del known[key]
            if controller.pod_gone(key.partition("/")[2], uid, owner):
                looks[owner] = None
            owner = ""
        if gone or pod is None:
            return
        if not owner and (owner := objects.owner_key(pod.metadata)):
            known[key] = (pod.metadata.uid, owner)
        if owner and controller.pod_changed(pod, owner):
            looks[owner] = None

    def on_quarantine(self, entry: Quarantined) -> None:
        """Keep the last readable state of an object; the reflector has reported what is wrong."""

    def on_release(self, entry: Quarantined) -> None:
        """Do nothing: the event of the object follows, or its deletion has been reported already."""


def _is_for_a_job(command: Command) -> bool:
    target = command.target
    return target.kind == VCJOBS.kind and target.api_version == VCJOBS.api_version


def _job_of(command: Command) -> str:
    return f"{command.metadata.namespace}/{command.target.name}"
