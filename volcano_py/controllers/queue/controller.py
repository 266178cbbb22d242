"""The queue controller: watches queues, PodGroups and commands, and carries out the writes of `decision.judge`."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import structlog

from volcano_py.api import keys
from volcano_py.api.batch import Command
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.controller import UNSERVED_S, ControllerContext
from volcano_py.controllers.queue import commands, decision
from volcano_py.controllers.queue.decision import CountedQueue
from volcano_py.controllers.queue.known import KnownQueues
from volcano_py.controllers.recent import Recent
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import REFUSED_FOR_GOOD, Delete, says_it_stays
from volcano_py.kube import errors
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import COMMANDS, QUEUES
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()

_WAITS_S: Final = 0.5  # until the next look at a command that has to wait
_DONE_S: Final = 86400.0  # how long a command that cannot be deleted is remembered
_REFUSED_S: Final = 60.0  # until the next attempt to delete it
_PATIENCE_S: Final = 30.0  # how long a command waits for a queue that the watch does not show
PARENT_OPENS_S: Final = 5.0
"""How long a command that opens a queue waits for its parent to be opened; Volcano tries fifteen times."""


class QueueController:
    """Creates required queues, writes state and PodGroups of every queue, and carries out commands for queues."""

    name: Final = "queue-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._writer = context.writer
        self._clock = context.clock
        self._events = context.events
        self._metrics = context.metrics
        self._options = options = context.options
        self._served = context.served
        self._queues: View[CountedQueue] = View()
        self._counts: dict[str, Counter[str]] = {}  # queue -> phase -> PodGroups
        self._children: dict[str, set[str]] = {}  # queue -> queues that name it as their parent
        self._known = KnownQueues()
        self._commands: View[Command] = View(commands.is_for_queues)
        self._undeletable: Recent[str] = Recent(context.clock, _REFUSED_S)  # their uids
        self._orders: dict[str, dict[str, float]] = {}  # queue -> its commands, and when they were first seen
        self._deleted: Recent[str] = Recent(context.clock)  # uids of commands that the watch may still show
        self._done: Recent[str] = Recent(context.clock, _DONE_S)  # uids of commands that only have to be deleted
        self._ours = options.scheduler_names
        self._required = tuple(dict.fromkeys((keys.ROOT_QUEUE, options.default_queue)))
        self._queue: WorkQueue[str] = WorkQueue(
            self.name,
            self._reconcile,
            options.work_queue(options.queue_workers),
            clock=context.clock,
            rng=context.rng,
            refill=self._all,
            observe=context.metrics.turn,
            outage=context.client.outage,
        )
        self._queues.subscribe(self._queue_changed)
        self._commands.subscribe(self._command_changed)
        context.groups.subscribe(self._group_changed)

    def watch(self, informers: Informers) -> None:
        """Add the informers of the objects that this controller needs in addition to PodGroups."""
        informers.add(QUEUES, CountedQueue, self._queues, optional=True)
        informers.add(COMMANDS, Command, self._commands, name="commands for queues", optional=True)

    def start(self, supervisor: Supervisor) -> None:
        """Start to reconcile; until then, changes are only collected."""
        self._queue.start(supervisor)
        for name in self._required:
            self._queue.add(name)

    def backlog(self) -> int:
        """Return how many queues wait in the work queue or are being reconciled."""
        return self._queue.overdue

    # Changes

    def _queue_changed(self, name: str, before: CountedQueue | None, after: CountedQueue | None) -> None:
        if before is not None:
            self._forget_child(before.spec.parent, name)
        if after is not None:
            self._children.setdefault(after.spec.parent, set()).add(name)
            self._known.show(name, after)
        elif self._known.gone(name):
            self._metrics.queue_gone(name)
        self._queue.add(name)
        if before is None or after is None or before.status.state != after.status.state:
            for child in sorted(self._children.get(name, ())):
                self._queue.add(child)

    def _forget_child(self, parent: str, name: str) -> None:
        children = self._children.get(parent, set())
        children.discard(name)
        if not children:
            self._children.pop(parent, None)

    def _group_changed(self, _: str, before: PodGroup | None, after: PodGroup | None) -> None:
        was, now = self._place(before), self._place(after)
        if was == now:
            return
        for place, step in ((was, -1), (now, 1)):
            if place is not None:
                queue, phase = place
                counts = self._counts.setdefault(queue, Counter())
                counts[phase] += step
                if not counts[phase]:
                    del counts[phase]
                    if not counts:
                        del self._counts[queue]
                self._queue.add_later(queue, self._options.count_after_s)

    def _command_changed(self, key: str, before: Command | None, after: Command | None) -> None:
        if before is not None:
            orders = self._orders[before.target.name]
            del orders[key]
            if not orders:
                del self._orders[before.target.name]
            self._queue.add(before.target.name)  # for the next command
        if after is not None:
            self._orders.setdefault(after.target.name, {})[key] = self._clock.monotonic()
            self._queue.add(after.target.name)

    def _place(self, group: PodGroup | None) -> tuple[str, str] | None:
        """Return the queue and the phase under which a PodGroup counts."""
        if group is None or group.metadata.annotations.get(keys.GROUP_SCHEDULER, self._ours[0]) not in self._ours:
            return None  # the annotation names another scheduler
        phase = group.status.phase or keys.PHASE_PENDING
        return (
            group.spec.queue or self._options.default_queue,
            phase if phase in decision.PHASES else keys.PHASE_UNKNOWN,
        )

    def _all(self) -> Iterable[str]:
        return [*self._required, *self._queues.keys(), *self._orders]

    # Reconciling

    async def _reconcile(self, name: str) -> None:
        if not self._served(QUEUES):
            self._queue.add_later(name, UNSERVED_S)
            return
        queue = self._known.get(name)
        if queue is None and name in self._required and await self._writer.write(decision.missing(name)):
            log.info("queue created", queue=name)
        command = self._next_command(name)
        if command is not None and command.metadata.uid in self._undeletable:
            self._queue.add_later(name, _REFUSED_S)  # others wait as well: the next process may carry it out again
        elif command is not None:
            if await self._carry_out(queue, command):
                return  # its deletion is the next change of this queue
            self._queue.add_later(name, _WAITS_S)
        if queue is not None:
            await self._synchronise(queue)

    async def _synchronise(self, queue: CountedQueue, action: str = "") -> None:
        """Bring a queue up to date, and carry out an action."""
        name = queue.metadata.name
        counts = self._counts.get(name, Counter())
        parent = self._parent_of(queue)
        missing = queue.spec.parent if parent is None and name != keys.ROOT_QUEUE else ""
        if missing and missing not in self._required:  # required queues are created in a moment
            log.warning(
                "the parent of a queue does not exist: create it or change spec.parent",
                queue=name,
                parent=queue.spec.parent,
            )
        verdict = decision.judge(queue, self._known.last_state(name), parent, counts, action)
        self._known.sending(name, verdict.state)
        for write in verdict.writes:
            self._known.answered(name, await self._writer.answered(write))
        for event in verdict.events:
            self._events.record(event)
        if self._known.get(name) is not None:
            self._known.stored(name, verdict.state)
            self._metrics.queue(name, counts)
        if verdict.state != queue.status.state:
            log.info("queue changes its state", queue=name, before=queue.status.state, state=verdict.state)

    def _parent_of(self, queue: CountedQueue) -> CountedQueue | None:
        return self._known.get(queue.spec.parent) if queue.spec.parent else None

    # Commands

    def _next_command(self, name: str) -> Command | None:
        """Return the command for a queue whose turn it is."""
        found = (self._commands.get(key) for key in self._orders.get(name, ()))
        waiting = (command for command in found if command is not None and command.metadata.uid not in self._deleted)
        return min(waiting, key=commands.place, default=None)

    async def _carry_out(self, queue: CountedQueue | None, command: Command) -> bool:
        """Carry out a command and delete it; return False if it has to wait for a queue, or cannot be deleted."""
        meta = command.metadata
        if meta.uid not in self._done:
            waited_s = self._clock.monotonic() - self._orders[command.target.name][f"{meta.namespace}/{meta.name}"]
            if queue is None or queue.metadata.uid != command.target.uid:
                if waited_s < _PATIENCE_S:
                    return False
                self._report_lost(command)
            elif text := commands.refusal(queue, command.action, self._parent_of(queue)):
                if command.action == commands.OPEN and waited_s < PARENT_OPENS_S:
                    return False
                reason = command.action if command.action in (commands.OPEN, commands.CLOSE) else commands.UNKNOWN
                self._events.record(decision.event(queue, keys.EVENT_WARNING, reason, text))
            else:
                await self._synchronise(queue, command.action)
            self._done.add(meta.uid)
        delete = Delete(COMMANDS, meta.namespace, meta.name, meta.uid)
        try:
            await self._writer.write(delete)
        except REFUSED_FOR_GOOD as error:
            self._report_undeletable(queue, delete, error)
            return False
        self._deleted.add(meta.uid)
        return True

    def _report_undeletable(self, queue: CountedQueue | None, delete: Delete, error: errors.ApiError) -> None:
        self._undeletable.add(delete.uid)
        log.warning("command cannot be deleted", command=f"{delete.namespace}/{delete.name}", error=str(error))
        if queue is not None:
            text = says_it_stays(delete, "queue", error)
            self._events.record(decision.event(queue, keys.EVENT_WARNING, commands.UNDELETABLE, text))

    def _report_lost(self, command: Command) -> None:
        meta, target = command.metadata, command.target
        text = f"{command.action} is not carried out: queue {target.name} with uid {target.uid} does not exist"
        log.warning("command without a queue", command=f"{meta.namespace}/{meta.name}", queue=target.name)
        who = (COMMANDS.kind, meta.namespace, meta.name, meta.uid)
        self._events.record(RecordEvent(*who, keys.EVENT_WARNING, commands.LATE, text))
