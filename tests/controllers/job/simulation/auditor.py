"""Checks every write of the job controller against the rules in `expected`, at the moment the server carries it out."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.controllers.job.simulation import expected
from tests.controllers.job.simulation.causes import Causes, index_of, task_of, version_of
from tests.controllers.job.simulation.incarnation import Incarnation
from tests.controllers.job.simulation.server import Obj, Server, is_killed
from tests.controllers.job.simulation.specs import NAME
from volcano_py.api import keys
from volcano_py.controllers.job import objects
from volcano_py.controllers.job.members import Members
from volcano_py.kube.resource import COMMANDS, PODGROUPS, PODS, VCJOBS, Resource
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import FakeClock

_ACTIVE = ("Pending", "Running")


class Wrong(AssertionError):
    """The controller broke a rule."""


def need(holds: bool, rule: str) -> None:
    """Raise Wrong unless something holds."""
    if not holds:
        raise Wrong(rule)


class Auditor:
    """Follows one job through all lives of the controller."""

    def __init__(
        self,
        server: Server,
        clock: FakeClock,
        causes: Causes,
        life: Callable[[], Incarnation | None],
        tell: Callable[..., None],
    ) -> None:
        self._tell = tell
        self._server = server
        self._clock = clock
        self._causes = causes
        self._life = life
        self.phases: list[str] = []
        """Every phase entered."""
        self.acted: Counter[tuple[str, str]] = Counter()
        """Phases entered because of an event, by event and subject."""
        self.dropped: set[str] = set()
        """uids of pods that the controller deleted."""
        self.made: set[str] = set()
        """Names of PodGroups uids that were deleted by the controller."""
        self.retained = True
        """Whether the last kill of the whole job left the pods that had ended alone."""
        self.commands: dict[str, Obj] = {}
        """Every Command that was ever issued, by name."""
        self.most_ready: Counter[str] = Counter()
        """The most ready pods that a task had at once."""
        self.least: dict[str, int] = {}
        """The smallest minimum that a task ever had."""
        self.status_writes = 0
        self.actions: set[str] = set()
        """Every action that was carried out."""
        self._executed: list[str] = []
        self._known_pods = 0
        self._to_note = 0
        self._whole_owed = ""  # an action on a part of the job that killed all of it: another must say so
        self._counted_at = float("-inf")
        self._counting_life: Incarnation | None = None
        self._counted_generation = 1

    @property
    def job(self) -> Obj | None:
        """The job on the server."""
        return self._server.find(VCJOBS, NAME)

    def sent(self) -> None:
        """Remember how many pods the controller knows at the moment it sends a write."""
        life, job = self._life(), self.job
        record = None if life is None or job is None else life.record(job["metadata"]["uid"])
        self._known_pods = 0 if record is None else len(record.members)
        completed = 0 if record is None else sum(map(len, record.members.completed.values()))
        noted = expected.completed(job["status"]) if job is not None and "status" in job else ()
        self._to_note = max(0, completed - len(noted))  # they are gone, and count; the note follows an action

    def before(self, verb: str, resource: Resource, name: str, body: Any) -> None:
        """Check a write before it is carried out."""
        job = self.job
        if resource is PODS and verb == "create":
            self._creates(job, body)
        elif resource is PODS:
            pod = self._server.find(PODS, name)
            uid = body if isinstance(body, str) else body["metadata"]["uid"]
            if pod is not None and pod["metadata"]["uid"] == uid:
                mark = body["metadata"]["annotations"][keys.OUT_OF_SYNC] if verb == "patch" else ""
                if mark is not None:  # else the mark is taken off a pod that is needed again
                    self._kills(job, pod, marks=mark == objects.KILLED)
        elif resource is COMMANDS:
            self._settles(job, name)

    def after(self, verb: str, resource: Resource, name: str, before: Obj | None, answer: Obj | None) -> None:
        """Check a write that was carried out."""
        if resource is VCJOBS and verb == "patch status" and before is not None and answer is not None:
            self.status_writes += 1
            self._enters(before, answer)
        elif resource in (PODS, PODGROUPS) and verb == "delete" and before is not None:
            self.dropped.add(before["metadata"]["uid"])
        elif resource is PODS and verb == "create":
            self._causes.count("PodPending", name)

    # Pods

    def _creates(self, job: Obj | None, pod: Obj) -> None:
        name = pod["metadata"]["name"]
        life = self._life()
        if job is None or life is None:
            return  # it goes with its owner
        if self._server.find(PODS, name) is not None:
            return  # it exists, and the server refuses
        owner = pod["metadata"]["ownerReferences"][0]["uid"]
        if owner != job["metadata"]["uid"] or life.client.unsure:
            return
        status = job["status"]
        need(status["state"]["phase"] in _ACTIVE, f"{name} is created while the job is {status['state']['phase']}")
        version = status.get("version", 0)
        need(version_of(pod) == version, f"{name} gets version {version_of(pod)} in version {version} of the job")
        task = next(one for one in job["spec"]["tasks"] if one["name"] == task_of(pod))
        need(
            expected.may_start(job, task, self.most_ready, self.least),
            f"{name} is created before what its task depends on was ready",
        )
        life.note_wanted(owner)
        need(
            bool(life.groups - self.dropped),
            f"{name} is created without a PodGroup that the controller has not deleted",
        )

    def _kills(self, job: Obj | None, pod: Obj, *, marks: bool) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        life = self._life()
        if job is None or life is None or is_killed(pod) or "deletionTimestamp" in pod["metadata"]:
            return
        status = job["status"]
        phase, notes = status["state"]["phase"], status.get("controlledResources") or {}
        record = life.record(job["metadata"]["uid"])
        member = None if record is None else record.members.get(name)
        need(member is not None and member.uid == uid, f"{name} is killed although the controller does not know it")
        assert member is not None
        if phase in _ACTIVE:
            if life.client.unsure:
                return
            wanted = life.wanted.get(task_of(pod), 0)
            need(not marks and index_of(pod) >= wanted, f"{name} is killed while the job is {phase}")
            return
        if phase != "Restarting":
            need(uid not in life.had_ended, f"{name} has ended and is killed while the job is {phase}")
            return
        if "restarting-all" in notes:
            need(
                not (self.retained and uid in life.had_ended and _is_kept(pod, notes))
                or self._by_part(job, pod, notes),
                f"{name} has ended, and is killed by the last restart or a resumption",
            )
            return
        need(self._by_part(job, pod, notes), f"{name} is killed by a restart of something else")

    def record(self, event: RecordEvent) -> None:
        """See an event that the controller records."""
        self._tell("event", event.reason, event.message)
        if event.reason == "ExecuteAction":
            self._executed.append(event.message)
            if (found := re.search(r"execute action (\w+):", event.message)) is not None:
                self.actions.add(found[1])
                if found[1] in expected.WHOLE:
                    self._whole_owed = ""

    def _by_part(self, job: Obj, pod: Obj, notes: Obj) -> bool:
        name, uid, task = pod["metadata"]["name"], pod["metadata"]["uid"], task_of(pod)
        partition = pod["metadata"]["labels"].get("volcano.sh/partition-id", "")
        if (
            notes.get(f"restarting-pod/{name}") == uid
            or f"restarting-task/{task}" in notes
            or f"restarting-partition/{task}/{partition}" in notes
        ):
            return True
        # Of several actions in one look, the last decides what is noted.
        subjects = (f"pod default/{NAME}-{task}-", f"task {task} ")
        return any(
            f"action {part}" in text and any(subject in text for subject in subjects)
            for text in self._executed
            for part in expected.PARTS
        )

    # Commands

    def _settles(self, job: Obj | None, name: str) -> None:
        command = self.commands.get(name)
        if command is None or job is None or self._server.find(COMMANDS, name) is None:
            return
        uid, action = command["metadata"]["uid"], command["action"]
        status = job["status"]
        if (status.get("controlledResources") or {}).get("command") == uid:
            return
        phase = (status.get("state") or {}).get("phase", "")
        nothing = action in expected.PARTS or expected.leads_to(phase or "Pending", action) is None
        life = self._life()
        need(
            nothing or (life is not None and life.client.unsure) or command["target"]["uid"] != job["metadata"]["uid"],
            f"Command {name} ({action}) is deleted in phase {phase} and was not carried out",
        )

    # Status

    def _enters(self, before: Obj, after: Obj) -> None:
        old, new = before["status"], after["status"]
        lies = expected.completed(new) - expected.completed(old) - self._causes.completed
        need(not lies, f"pods are noted as succeeded and gone that are not: {sorted(lies)}")
        was, phase = (old.get("state") or {}).get("phase", ""), new["state"]["phase"]
        if old != new:
            self._tell(
                "status",
                {name: value for name, value in new.items() if name != "conditions" and value != old.get(name)},
            )
        retries = new.get("retryCount", 0) - old.get("retryCount", 0)
        kills = new.get("version", 0) - old.get("version", 0)
        life = self._life()
        if life is None or life.client.unsure or life is not self._counting_life:
            self._whole_owed = ""  # the events of the last look may have gone with a controller
        need(not self._whole_owed, f"{self._whole_owed} kills the whole job")
        if phase == was:
            self._stays(old, new, phase, retries, kills, life)
            return
        if life is not self._counting_life or life is None:
            self._counting_life = life
        self._counted_at = self._clock.monotonic() if life is None or not life.client.unsure else float("-inf")
        step = f"{was or 'nothing'} to {phase}"
        need(phase in expected.MAY_FOLLOW[was].split(), f"a job goes from {step}")
        self.phases.append(phase)
        if phase != "Restarting":
            self._executed.clear()
        state = new["state"]
        need(bool(state.get("reason")) and bool(state.get("message")), f"the step from {step} says no reason")
        self._has_condition(new, phase)
        self._counts_each_pod_once(new)
        if was == "Restarting" and phase in ("Pending", "Failed") and life is not None:
            self._has_killed_all(before, life)
        if not was:
            need(retries == 0 and kills == 0, "a new job counts a retry or version")
        elif expected.is_event(state["reason"]) and expected.by_itself(before, new) != phase:
            self._by_action(before, new, was, retries, kills)
        else:
            need(
                expected.by_itself(before, {**new, "retryCount": old.get("retryCount", 0)}) == phase,
                f"a job goes from {step} although its counters do not say so: {_counters(new)}",
            )
            need(retries == 0 and kills == 0, f"the step from {step} counts a retry or version")

    def _stays(self, old: Obj, new: Obj, phase: str, retries: int, kills: int, life: Incarnation | None) -> None:
        need(
            new["state"].get("lastTransitionTime") == old["state"].get("lastTransitionTime"),
            "the time of a phase moves",
        )
        need(new.get("conditions") == old.get("conditions"), "conditions change within a phase")
        need(retries == 0, f"a retry is counted within {phase}")
        need(kills >= 0 and (kills == 0 or phase == "Restarting"), f"the version changes within {phase}")
        if kills:
            self.retained = new.get("retryCount", 0) >= expected.max_retry(self.job or {})
        same = new.get("controlledResources") == old.get("controlledResources") and new["state"] == old["state"]
        now = self._clock.monotonic()
        generation = (self.job or {}).get("metadata", {}).get("generation", 1)
        resized = generation != self._counted_generation  # pods that are not needed leave the counts before they go
        self._counted_generation = generation
        if same and not kills and life is self._counting_life and not resized:
            need(now - self._counted_at >= 0.999, "counters are written more than once a second")
        self._counting_life = life
        self._counted_at = now if life is None or not life.client.unsure else float("-inf")

    def _has_killed_all(self, job: Obj, life: Incarnation) -> None:
        """Check that no pod of an earlier version is left when a restart is over, but for those that may stay."""
        record = life.record(job["metadata"]["uid"])
        for member in () if record is None else record.members:
            old = member.version < job["status"].get("version", 0) and not member.deleting
            need(
                not old or (self.retained and member.phase in expected.ENDED),
                f"the restart is over, and {member.name} of an earlier version lives",
            )

    def _has_condition(self, status: Obj, phase: str) -> None:
        conditions = status.get("conditions") or [{"status": "", "lastTransitionTime": ""}]
        names = [one["status"] for one in conditions]
        need(names[-1] == phase, f"the newest condition is {names[-1]} in {phase}")
        need(len(set(names)) == len(names), "a phase has two conditions")
        need(
            conditions[-1]["lastTransitionTime"] == status["state"]["lastTransitionTime"],
            "the time of the condition is not that of the state",
        )

    def _counts_each_pod_once(self, status: Obj) -> None:
        there = self._known_pods + len(expected.completed(status))
        total = sum(_counters(status).values())
        need(
            there <= total <= there + self._to_note,
            f"the counters say {total} pods, and the controller knows {there}: {_counters(status)}",
        )
        by_phase: Counter[str] = Counter()
        for task in (status.get("taskStatusCount") or {}).values():
            by_phase.update({phase.lower(): count for phase, count in task["phase"].items()})
        by_job = {name: count for name, count in _counters(status).items() if count and name != "terminating"}
        need(dict(by_phase) == by_job, f"tasks say {dict(by_phase)} and the job says {by_job}")

    def _by_action(self, job: Obj, new: Obj, was: str, retries: int, kills: int) -> None:
        event, message, phase = new["state"]["reason"], new["state"]["message"], new["state"]["phase"]
        said = expected.said(event, message)
        need(said is not None, f"{event}: {message!r} does not say what happened")
        assert said is not None
        action = self._asked(job, event, said)
        need(
            expected.leads_to(was, action) == phase,
            f"{event} asks for {action}, and the job goes from {was} to {phase}",
        )
        last = (job["status"].get("retryCount", 0)) >= expected.max_retry(job) - 1
        whole = action in expected.WHOLE
        need(kills >= 1 if whole else kills >= 0, f"{action} leaves the version")
        self._whole_owed = action if kills and not whole else ""
        again = event == "PodEvicted" and not whole and job["status"].get("retryCount", 0) > 0  # by the same drain
        may_count = {1, 0} if again else {1}
        need(retries in (may_count if phase == "Restarting" else {0}), f"{action} from {was} counts {retries} retries")
        if kills:
            self.retained = action != "RestartJob" or last if whole else last
        self.acted[event, said.subject] += 1
        if event != "CommandIssued":
            happened = self._causes.seen[event, said.subject]
            self._is_of_this_version(event, said.subject, job["status"].get("version", 0))
            need(
                self.acted[event, said.subject] <= max(happened, self._maybe(event, said.subject)),
                f"{event} of {said.subject} happened {happened} times, and is answered more often",
            )
        else:
            need(self.acted[event, said.subject] == 1, f"Command {said.subject} is carried out twice")

    def _is_of_this_version(self, event: str, pod: str, version: int) -> None:
        """Check that what happened to a pod concerns the job as it is now."""
        of_pod = {cause.version for cause in self._causes.all if (cause.event, cause.pod) == (event, pod)}
        need(
            not of_pod or version in of_pod or event == "PodEvicted",
            f"{event} of {pod} in versions {sorted(of_pod)} is answered in version {version}",
        )

    def _maybe(self, event: str, subject: str) -> int:
        """Return how often an eviction of which only the count is known may have been one of this pod."""
        if event != "PodEvicted":
            return 0
        task = subject.removeprefix(f"{NAME}-").rpartition("-")[0]
        return self._causes.seen[event, f"task {task}"]

    def _asked(self, job: Obj, event: str, said: expected.Said) -> str:
        if event == "CommandIssued":
            return str(self.commands[said.subject]["action"])
        if event == "Unknown":
            task, code = "", 0
        elif event in ("TaskCompleted", "TaskFailed"):
            task, code = said.subject, 0
        else:
            task, code = said.subject.removeprefix(f"{NAME}-").rpartition("-")[0], int(said.detail or 0)
        if event == "PodFailed":
            known = self._causes.exit_codes.get(said.subject, set())
            need(code in known, f"{said.subject} is said to have failed with {code}; it failed with {sorted(known)}")
        action, delay_s = expected.answer(job, event, task, code)
        need(said.delayed == (delay_s > 0), f"{event} of {said.subject} has a delay of {delay_s} s: {said}")
        if delay_s:
            self._not_early(event, said.subject, delay_s)
        return action

    def _not_early(self, event: str, subject: str, delay_s: float) -> None:
        since = [cause.at for cause in self._causes.all if cause.event == event and cause.pod == subject]
        need(
            not since or self._clock.monotonic() - min(since) >= delay_s - 1.0,
            f"{event} of {subject} is answered early",
        )


def _is_kept(pod: Obj, notes: Obj) -> bool:
    """Say whether a pod that has ended stays if a restart leaves any: a resumption runs those again that failed."""
    return pod["status"]["phase"] == "Succeeded" or notes["restarting-all"] != "unsuccessful"


def _counters(status: Obj) -> dict[str, int]:
    names = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
    return {name: status.get(name, 0) for name in names}


def recount(members: Members) -> None:
    """Check that the counts that members keep are those of the pods that they hold."""
    fresh = Members()
    fresh.expect((name, task.replicas) for name, task in members.tasks)
    for name, indices in members.completed.items():
        fresh.complete(name, indices)
    for member in members:
        fresh.put(member)
    need(fresh.counts() == members.counts(), f"members count {members.counts()} and have {fresh.counts()}")
    for name, task in fresh.tasks:
        kept = members.task(name)
        for field in ("by_index", "completed", "missing", "extra", "active", "ended", "ready", "restarts"):
            need(getattr(task, field) == getattr(kept, field), f"{field} of task {name} is wrong")
        need(+task.phases == +kept.phases, f"the phases of task {name} are wrong")
