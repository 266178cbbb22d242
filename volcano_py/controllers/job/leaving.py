"""Deletes the pods of a job that must go, each with a mark that says why, and takes the mark off pods that stay.

The mark is for other controllers: those that are started later, and that did not see who deleted the pod.
"""

from typing import Final

from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.controllers.answers import read_answer
from volcano_py.controllers.controller import ControllerContext
from volcano_py.controllers.job import acting, objects
from volcano_py.controllers.job.many import each_in_turn
from volcano_py.controllers.job.members import Member
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.observed import JobPlan
from volcano_py.controllers.job.record import Record
from volcano_py.controllers.writes import Delete, Patch
from volcano_py.kube import errors
from volcano_py.kube.resource import PODS

EVENT_DELETE: Final = "FailedDelete"
_REFUSED: Final = (errors.Forbidden, errors.Invalid, errors.BadRequest)
"""How a mark is refused for good."""


class Leaving:
    """Deletes pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._writer = context.writer
        self._events = context.events
        self._clock = context.clock

    async def delete(self, record: Record, job: Job, plan: JobPlan) -> None:
        """Delete the pods of a plan; raise ApiError if one could not be deleted."""
        namespace = job.metadata.namespace

        async def kill(member: Member, turn: int) -> None:
            member.killed = True  # from now on, its end is no eviction
            await self._delete(record, namespace, member, objects.KILLED, turn)

        async def drop(member: Member, turn: int) -> None:
            member.dropped = True
            try:
                await self._delete(record, namespace, member, objects.NOT_NEEDED, turn)
            except errors.ApiError as error:
                now = record.members.get(member.name)
                if not error.maybe_applied and now is not None and now.uid == member.uid:
                    now.dropped = False
                raise

        try:
            await each_in_turn(self._writer, plan.kill, kill)
            await each_in_turn(self._writer, plan.delete, drop)
        except errors.Conflict:
            raise  # another pod has the name, or this one changes too fast: the watch will say which
        except errors.ApiError as error:
            text = f"a pod could not be deleted: {error}"
            self._events.record(acting.event(job, keys.EVENT_WARNING, EVENT_DELETE, text))
            raise

    async def keep(self, record: Record, job: Job, members: tuple[Member, ...]) -> None:
        """Take the mark of a pod that is not needed off pods that are needed again; raise ApiError."""
        namespace = job.metadata.namespace

        async def unmark(member: Member, turn: int) -> None:
            try:
                answer = await self._writer.answered(_mark(namespace, member, None), turn)
            except _REFUSED:
                record.members.keep_mark(member.name)
                return
            if answer is None:
                path = PODS.item(member.name, namespace)
                raise errors.Conflict("patch", path, "the pod is gone, and the watch still shows it")
            read_answer(answer, JobPod, lambda pod: self._take_kept(record, pod))

        await each_in_turn(self._writer, members, unmark)

    def _take_kept(self, record: Record, pod: JobPod) -> None:
        """Take the state of a pod that has lost its mark; if it does not terminate yet, its end will be an eviction."""
        known = record.members.get(pod.metadata.name)
        if known is not None and known.uid == pod.metadata.uid and pod.metadata.deletion_timestamp is None:
            known.dropped = known.unmarked = False
        record.put_pod(pod, self._clock.monotonic())

    async def _delete(self, record: Record, namespace: str, member: Member, mark: str, turn: int) -> None:
        """Mark and delete a pod. If it cannot be marked at the second attempt either, it is deleted without a mark."""
        if not member.deleting:
            try:
                await self._writer.answered(_mark(namespace, member, mark), turn)
            except errors.ApiError as error:
                if not isinstance(error, _REFUSED) and not member.unmarked:
                    member.unmarked = True
                    raise
        await self._writer.answered(Delete(PODS, namespace, member.name, member.uid), turn)
        record.members.mark_deleting(member.name, member.uid)


def _mark(namespace: str, member: Member, mark: str | None) -> Patch:
    meta = {"uid": member.uid, "annotations": {keys.OUT_OF_SYNC: mark}}
    return Patch(PODS, namespace, member.name, {"metadata": meta})
