"""What the controller knows of one job: the object, its pods, and what it has done for it. Every change arrives here.

A change comes from the watch or as the answer to a write of our own, in any order. Of two states of an object the one
with the higher resourceVersion counts. So a decision never rests on a state older than the last write.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial

import msgspec

from volcano_py.api.batch import Job, Task
from volcano_py.api.job_defaults import with_defaults
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job import bookkeeping, checks, delays, happenings, phases, pod_group, policies, takeover
from volcano_py.controllers.job.applied import AppliedObjects
from volcano_py.controllers.job.commands import JobCommands
from volcano_py.controllers.job.delays import ArmedActions
from volcano_py.controllers.job.happenings import Trigger
from volcano_py.controllers.job.members import Member, Members
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.observed import Problem
from volcano_py.controllers.job.plugins.contract import PluginFactory, PluginObject, PluginProblem
from volcano_py.controllers.job.plugins.registry import Plugins, build_plugins
from volcano_py.controllers.job.pods import PodFactory
from volcano_py.controllers.job.unseen import Created, Unseen
from volcano_py.controllers.versions import is_older
from volcano_py.kube.resource import PODGROUPS, PODS


class Record:
    """One job, by its namespace and uid (`objects.key_of`)."""

    def __init__(self, key: str, factories: Mapping[str, PluginFactory]) -> None:
        self.key = key
        self.job: Job | None = None
        """With defaults; None while only pods of it have been seen."""
        self.members = Members()
        self.group: PodGroup | None = None
        self.commands = JobCommands()
        self.triggers: deque[Trigger] = deque()
        self.answered: Mapping[str, str] = {}
        """Notes about what another program has answered before the first look."""
        self.armed = ArmedActions()
        self.problem: Problem | None = None
        """Why the last pod could not be created."""
        self.creation_failed = False
        """Whether the last attempt to create pods failed, for whatever reason."""
        self.refusal: Problem | None = None
        """Why something that pods need could not be written: the PodGroup, a claim, an object of a plugin."""
        self.applied = AppliedObjects()
        self.unheeded: Mapping[str, object] = {}
        """Fields of the PodGroup that the API server did not keep: its definition of PodGroups is an older one."""
        self.doubtful = False
        """Whether something of the job vanished that nobody here deleted: the job itself may be gone, unseen."""
        self.gone = False
        """Whether the end of the job is known, from the watch or an answer: a state that comes now is an old one."""
        self.told = ""
        self.written_at = float("-inf")
        self.plugins = Plugins((), (), ())
        self.news: list[str] = []
        """Warnings of plugins that are not told yet."""
        self._plugin_table = factories
        self._objects: tuple[PluginObject, ...] | Problem | None = None
        self._pod_factories: dict[str, PodFactory] = {}
        self.unseen = Unseen()
        # Pods and PodGroups that are gone, by uid, oldest first; and whether the watch said so, or an answer.
        self._gone: dict[str, bool] = {}
        self._started = False
        self._answers: frozenset[str] = frozenset()
        self._flaw = ""
        self._budgets: dict[str, int] = {}  # maxRetry by task

    # The job

    def put_job(self, job: Job, scheduler_name: str, queue: str) -> bool:
        """Take a state of the job; return False if it is older than the known one or the same."""
        if self.gone:
            return False
        known = self.job
        if known is not None:
            new, old = job.metadata.resource_version, known.metadata.resource_version
            if new == old or is_older(new, old):
                return False
        if known is not None and known.metadata.generation == job.metadata.generation and job.metadata.generation:
            self.job = msgspec.structs.replace(known, metadata=job.metadata, status=job.status)
        else:
            self.job = with_defaults(job, scheduler_name, queue)
            self._changed_spec(known)
        self._pod_factories.clear()
        for task in self.job.spec.tasks:
            self.members.task(task.name).spent = bookkeeping.spent(job.status.controlled_resources, task.name)
        self._renew_done()
        return True

    def _renew_done(self) -> None:
        """Take which pods have succeeded and are gone: those that the status names, and those that it will name."""
        assert self.job is not None
        fresh: dict[str, set[int]] = {}
        for trigger in self.triggers:
            if trigger.event == happenings.COMPLETED and trigger.member is not None:
                fresh.setdefault(trigger.member.task, set()).add(trigger.member.index)
        notes, version = self.job.status.controlled_resources, self.job.status.version
        for task in self.job.spec.tasks:
            done = bookkeeping.completed(notes, task.name, task.replicas)
            self.members.complete(task.name, done | fresh.get(task.name, set()))
            self.members.kill_departing(task.name, partial(bookkeeping.is_victim, notes, version))

    def _changed_spec(self, known: Job | None) -> None:
        job = self.job
        assert job is not None
        self._objects = None
        self._flaw = checks.flaw(job)
        if checks.has_too_many_pods(job):
            return
        self._answers = policies.answered_events(job)
        self._budgets = {task.name: task.max_retry for task in job.spec.tasks}
        self.plugins = build_plugins(job, self._plugin_table)
        self.news += [text for text in self.plugins.warnings if text not in self.news]
        complete = {name for name, _ in self.members.tasks if happenings.is_complete(self.members, name)}
        self.members.expect((task.name, task.replicas) for task in job.spec.tasks)
        for task in job.spec.tasks if known is not None else ():
            if task.name not in complete and happenings.is_complete(self.members, task.name):  # it was scaled down
                self._note_completed(task)
        fixed = self.plugins.fixed_at_start
        if known is not None and fixed and len(self.members) and phases.replicas_of(known) != phases.replicas_of(job):
            self.news.append(
                f"the number of replicas changed: new pods get the new {', '.join(fixed)}, and running pods keep theirs"
            )

    def _note_completed(self, task: Task) -> None:
        """Note that all pods of a task have succeeded, on the pod with the highest index."""
        assert self.job is not None
        name = self.members.task(task.name).by_index.get(task.replicas - 1, "")
        last = self.members.get(name) or happenings.vanished(self.job, task.name, task.replicas - 1)
        self._note(last, [policies.TASK_COMPLETED])

    def start(self) -> None:
        """Begin to note what happens, with what the present state says about the time before.

        Until the first look, nothing is noted: a process that waits for its lease sees many changes that another one
        answers, and pods may be seen before their job.
        """
        job = self.job
        if self._started or job is None:
            return
        self._started = True
        for one in delays.restored(job.status.controlled_resources):
            self.armed.arm((one,))
        notes = job.status.controlled_resources
        if self.group is not None and pod_group.version_of(self.group) is None:
            self.answered = takeover.answered(job, self.members, self.group, self._budgets)
            notes = {**notes, **self.answered}
        for trigger in happenings.present(self.members, self._budgets, notes):
            if trigger.member is not None:
                self._note(trigger.member, [trigger.event])
        unknown = self.group is not None and self.group.status.phase == phases.GROUP_UNKNOWN
        if self.group is not None and unknown and notes.get(bookkeeping.ANSWERED_GROUP) != self.group.metadata.uid:
            self._note_unknown(self.group)
        if job.status.state.phase in (phases.PENDING, phases.RUNNING, phases.RESTARTING):
            missed = happenings.missed(job, self.members)
            self.triggers.extend(missed)
            self._renew_done()
            completed = {
                one.member.task for one in missed if one.event == happenings.COMPLETED and one.member is not None
            }
            for task in job.spec.tasks:  # what was noted before was told before
                gone = task.name in completed and not self.members.task(task.name).by_index
                if gone and happenings.is_complete(self.members, task.name):
                    self._note_completed(task)

    # Pods

    def put_pod(self, pod: JobPod, answered_at: float | None = None) -> bool:
        """Take a state of a pod; return False if it is older than the known one, the same, or gone already.

        ``answered_at`` is the time if it is the answer to a request, None if the watch shows it.
        """
        meta = pod.metadata
        if answered_at is None:
            self.unseen.seen(meta.uid)
        known = self.members.get(meta.name)
        if known is not None and known.uid == meta.uid:
            version = meta.resource_version
            if known.resource_version == version or is_older(version, known.resource_version):
                return False
            member = Member.of(pod)
            member.killed |= known.killed
            member.dropped |= known.dropped
            member.unmarked = known.unmarked
            member.completed |= known.completed
            member.deleting |= known.deleting  # a deletion that was answered may not show yet
        elif self._is_late(meta.uid, answered_at):
            return False
        else:
            member = Member.of(pod)
            if answered_at is not None:
                self.unseen.add(Created(PODS, meta.name, meta.uid), answered_at)
        before = self.members.put(member)
        if before is not None and before.uid != member.uid:
            self._note(before, happenings.removed(self.members, before))
        self._note(member, happenings.changed(self.members, before, member, self._budget(member.task)))
        return True

    def remove_pod(self, name: str, uid: str, *, answered: bool = False) -> bool:
        """Take that a pod is gone, from the watch or an answer; return False if it was not known."""
        if uid:
            self._note_gone(uid, answered)
            self.unseen.seen(uid)
        known = self.members.get(name)
        if known is None or (uid and known.uid != uid):
            return False
        self.members.remove(name)
        self.doubtful |= not known.killed
        self._note(known, happenings.removed(self.members, known))
        return True

    def exists(self, uid: str) -> None:
        """Take that a pod or PodGroup was just read, whatever was said of it before."""
        self._gone.pop(uid, None)

    def _is_late(self, uid: str, answered_at: float | None) -> bool:
        """Say whether a state of an object comes too late, because the object is gone.

        What the watch itself has removed and shows again exists: an older list had left it out, or the API server was
        restored from a backup.
        """
        if self._gone.get(uid) and answered_at is None:
            self.exists(uid)
        return uid in self._gone

    def _note_gone(self, uid: str, answered: bool) -> None:
        self._gone[uid] = not answered
        while len(self._gone) > 20_000:
            del self._gone[next(iter(self._gone))]

    def _note(self, member: Member, events: Iterable[str]) -> None:
        for event in events if self._started else ():
            # Most jobs have no policies: then ten thousand pods that start cost no answer each.
            if self.armed.by_key or event in self._answers or event == happenings.COMPLETED:
                self.triggers.append(Trigger(event, member))
                if event == happenings.COMPLETED:
                    self.members.complete_one(member)

    def _budget(self, task: str) -> int:
        return self._budgets.get(task, -1)

    def pod_factory(self, task: str, forwarded: bool) -> PodFactory:
        """Return the factory of the pods of a task."""
        found = self._pod_factories.get(task)
        if found is None:
            assert self.job is not None
            spec = policies.task_of(self.job, task)
            assert spec is not None
            found = self._pod_factories[task] = PodFactory(self.job, spec, forwarded=forwarded)
        return found

    # The PodGroup

    def put_group(self, group: PodGroup, answered_at: float | None = None) -> bool:
        """Take a state of the PodGroup, as `put_pod` does; return whether a look at the job is needed."""
        known, meta = self.group, group.metadata
        if answered_at is None:
            self.unseen.seen(meta.uid)
        if self._is_late(meta.uid, answered_at):
            return False
        if known is not None and is_older(group.metadata.resource_version, known.metadata.resource_version):
            return False  # also one with another uid: it was deleted before the known one was created
        self.group = group
        if known is None or known.metadata.uid != group.metadata.uid:
            if answered_at is not None:
                self.unseen.add(Created(PODGROUPS, meta.name, meta.uid), answered_at)
            return True
        same = known.spec == group.spec and known.status.conditions == group.status.conditions
        if known.status.phase == group.status.phase:
            return not same
        if group.status.phase == phases.GROUP_UNKNOWN:
            self._note_unknown(group)
        return True

    def _note_unknown(self, group: PodGroup) -> None:
        if self._started and policies.UNKNOWN in self._answers:
            self.triggers.append(Trigger(policies.UNKNOWN, version=pod_group.version_of(group)))

    def remove_group(self, uid: str, *, answered: bool = False) -> bool:
        """Take that a PodGroup is gone, from the watch or an answer; return False if it was not known."""
        self._note_gone(uid, answered)
        self.unseen.seen(uid)
        if self.group is None or self.group.metadata.uid != uid:
            return False
        self.group = None
        return True

    # Plugins

    def plugin_objects(self) -> tuple[PluginObject, ...]:
        """Return the objects that the plugins want; raise Problem if the job or its use of one of them is wrong."""
        if self._flaw:
            raise Problem("InvalidJob", self._flaw)
        if self.plugins.problems:
            raise Problem("PluginError", "; ".join(self.plugins.problems))
        if self._objects is None:
            assert self.job is not None
            try:
                self._objects = tuple(self.plugins.objects(self.job))
            except PluginProblem as problem:
                self._objects = Problem("PluginError", str(problem))
        if isinstance(self._objects, Problem):
            raise self._objects.with_traceback(None)  # else it keeps a line for each time it is raised
        return self._objects


def back_again(known: Record) -> Record:
    """Return the record of a job that was removed and is back, with what is there of it.

    Its definition may not have been served for a while. Pods and PodGroups were, so nothing shows them again.
    """
    record = Record(known.key, known._plugin_table)
    record.members, record.group, record.unseen, record._gone = known.members, known.group, known.unseen, known._gone
    record.commands = known.commands
    return record


def take_answered(record: Record, count: int) -> None:
    """Take that the oldest triggers of a job are answered, and that its status says what came of them."""
    events = {record.triggers.popleft().event for _ in range(count)}
    if happenings.COMPLETED in events and record.job is not None:
        record._renew_done()
