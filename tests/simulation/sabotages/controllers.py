"""Sabotages of the controllers: jobs, PodGroups, queues, and the work queue that they share."""

from typing import Final

from tests.simulation.sabotages.sabotage import Sabotage

_RECORD: Final = "volcano_py/controllers/job/record.py"
_ACTING: Final = "volcano_py/controllers/job/acting.py"
_CARRYING_OUT: Final = "volcano_py/controllers/job/carrying_out.py"
_LOST_POD: Final = "pod vanishes*|node vanishes*"

SABOTAGES: Final = (
    Sabotage(
        "pods-of-the-last-version-kept",
        "volcano_py/controllers/job/bookkeeping.py",
        "members.victims(ended=KILLED_ENDED.get(value, frozenset()), below=version)",
        "members.victims(ended=KILLED_ENDED.get(value, frozenset()), below=version - 1)",
        "A job that restarts keeps some of its old pods, whose peers are gone.",
        ("jobs keep their table",),
        ("kill at a write delete pods|pause at a write delete pods|kill at a write *jobs*", "work vcjob"),
    ),
    Sabotage(
        "killed-pods-count-as-lost",
        "volcano_py/controllers/job/happenings.py",
        "    if last.killed or last.dropped or not 0 <= last.index",
        "    if last.dropped or not 0 <= last.index",
        "A pod that the controller itself restarts counts as evicted, and the whole job restarts.",
        ("jobs keep their table",),
        ("work vcjob",),
    ),
    Sabotage(
        "restarts-not-counted",
        _ACTING,
        "    retries = status.retry_count + _is_retry(draft, rule, request)\n",
        "    retries = status.retry_count\n",
        "A job that can never run restarts for ever in spite of maxRetry.",
        ("jobs keep their table",),
        (_LOST_POD, "work vcjob"),
    ),
    Sabotage(
        "acts-without-its-status",
        _CARRYING_OUT,
        "        answer = await self._writer.answered(statuses.patch(job, plan.status))\n",
        "        try:\n"
        "            answer = await self._writer.answered(statuses.patch(job, plan.status))\n"
        "        except errors.ApiError:\n"
        "            return\n",
        "Pods are killed and nothing says why: the restart is not counted, and is forgotten with the process.",
        ("jobs keep their table",),
        (_LOST_POD, "work vcjob", "* [*] jobs*"),
    ),
    Sabotage(
        "failed-turn-dropped",
        "volcano_py/kube/workqueue.py",
        "        pause_s = self._queue.failed(key, error.retry_after_s, excusable=errors.is_refusal(error))",
        "        pause_s = self._queue.failed(key, error.retry_after_s, again=False)",
        "A job whose pod could not be created once waits for a minute, or for ever.",
        ("jobs have their pods",),
        ("503 create pods|500 create pods|dropped before* create pods|503 [*] podgroups*|* [*] jobs*",),
    ),
    Sabotage(
        "queue-counts-lost",
        "volcano_py/controllers/queue/controller.py",
        "        for write in verdict.writes:\n"
        "            self._known.answered(name, await self._writer.answered(write))\n"
        "        for event in verdict.events:",
        "        for write in verdict.writes:\n"
        "            from volcano_py.kube.errors import ApiError\n\n"
        "            try:\n"
        "                await self._writer.write(write)\n"
        "            except ApiError:\n"
        "                pass\n"
        "        for event in verdict.events:",
        "A queue shows numbers of PodGroups that are not so.",
        ("statuses are true",),
        ("* [*] queues*",),
    ),
    Sabotage(
        "own-write-of-a-queue-not-known",
        "volcano_py/controllers/queue/known.py",
        "            if queue.metadata.uid == known.newest.metadata.uid:\n                _take(known, queue)",
        "            del queue",
        "A queue that was closed while the watch was late becomes Unknown.",
        ("commands take effect",),
        ("order CloseQueue", "watch stalls*|older state watches|watches of a process stall controllers-0"),
    ),
    Sabotage(
        "command-for-a-queue-deleted-first",
        "volcano_py/controllers/queue/controller.py",
        "                await self._synchronise(queue, command.action)\n            self._done.add(meta.uid)",
        "                await self._writer.write(Delete(COMMANDS, meta.namespace, meta.name, meta.uid))\n"
        "                self._deleted.add(meta.uid)\n"
        "                await self._synchronise(queue, command.action)\n"
        "            self._done.add(meta.uid)",
        "A command for a queue is lost if its write fails, as in Volcano.",
        ("commands take effect",),
        ("order CloseQueue", "* [*] queues*"),
    ),
    Sabotage(
        "depends-on-ignored",
        "volcano_py/controllers/job/depends_on.py",
        "    return task is None or task.min_available is None or ready >= task.min_available",
        "    return task is None or task.min_available is None or ready >= 0",
        "The workers of a job start before its master runs, and fail.",
        ("tasks wait for others",),
        ("order *", "work vcjob"),
    ),
    Sabotage(
        "annotated-before-written",
        "volcano_py/controllers/podgroup/controller.py",
        "            async with limit:\n                await self._writer.write(patch)\n"
        '            self._written.add((meta["uid"], meta["resourceVersion"]))',
        '            self._written.add((meta["uid"], meta["resourceVersion"]))\n'
        "            async with limit:\n                await self._writer.write(patch)",
        "A plain pod whose annotation was refused once gets no PodGroup for a minute.",
        ("one group per owner",),
        ("work single", "503 [*] [*]|500 [*] [*]|dropped before* [*] [*]|409 [*] [*]|403 [*] [*]"),
    ),
    Sabotage(
        "older-state-of-a-job-taken",
        _RECORD,
        "            if new == old or is_older(new, old):\n                return False",
        "            if new == old:\n                return False",
        "A late watch takes the controller back to a phase that the job has left.",
        ("versions of jobs are kept",),
        (_LOST_POD, "older state watches", "work vcjob"),
    ),
    Sabotage(
        "group-of-the-past-kept",
        "volcano_py/controllers/job/decision.py",
        "    if group is None or (pod_group.version_of(group) or 0) >= seen.job.status.version:",
        "    if group is None or (pod_group.version_of(group) or 0) >= 0:",
        "A restarted job does not queue again: it takes its room before jobs that wait longer.",
        ("versions of jobs are kept",),
        ("pod vanishes*|node vanishes*", "work vcjob"),
    ),
    Sabotage(
        "existing-pod-not-adopted",
        _CARRYING_OUT,
        '                await self._adopt_pod(record, job, body["metadata"]["name"], one)',
        "                return",
        "After a lost answer the controller creates the same pod again, hundreds of times a second.",
        ("refusals are heeded",),
        ("creations unseen create pods", "work vcjob"),
    ),
    Sabotage(
        "lost-pods-not-looked-for-at-the-start",
        _RECORD,
        "            missed = happenings.missed(job, self.members)",
        "            missed = []",
        "A pod that was lost while no controller ran does not restart its job.",
        ("jobs keep their table",),
        (
            "pod vanishes*|node vanishes*",
            "work vcjob",
            "kill*controllers*|kill at a write *jobs*|orderly end controllers*|rolling update controllers*",
        ),
    ),
    Sabotage(
        "command-carried-out-twice",
        _ACTING,
        "    draft.notes[bookkeeping.COMMAND] = meta.uid\n",
        "",
        "A restart that a user asked for once happens twice.",
        ("jobs keep their table",),
        ("command *", "dropped after* [*] commands*|kill at a write*|late [*] commands*|answer after* [*] commands*"),
    ),
    Sabotage(
        "pod-counted-twice",
        "volcano_py/controllers/job/members.py",
        "        if before is not None:\n            self._count(before, -1)\n        self._by_name",
        "        if before is not None and before.uid == member.uid:\n            self._count(before, -1)\n"
        "        self._by_name",
        "The numbers of a job that was restarted are too high, and it never completes.",
        ("statuses are true",),
        ("pod vanishes*|node vanishes*", "work vcjob", "older state watches|watch stalls*"),
    ),
)
