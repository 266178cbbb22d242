"""The scheduler process put together: what it is made of, how it starts, how it ends.

start     listen for probes, open watches, wait for the first lists
stand by  with a cache that is kept up to date, until the lease is ours; without an election not at all
lead      open the watches anew, let the writers begin, wait for the barrier, run cycles
end       on request: no further cycle, binds that have begun are completed, statuses flushed, the lease given up;
          on demand, and when the lease is lost: at once, and what was decided is dropped
"""

import asyncio
import gc
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry

import volcano_py
from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.unreadable_objects import Unreadable
from volcano_py.daemon import announcements, debug
from volcano_py.daemon.answers import BindAnswers, EvictionAnswers
from volcano_py.daemon.barrier import StartBarrier
from volcano_py.daemon.configuration import Configuration, shown_policy
from volcano_py.daemon.cycle_loop import CycleLoop
from volcano_py.daemon.cycle_runner import Cycle, CycleRunner
from volcano_py.daemon.dispatch import Dispatcher
from volcano_py.daemon.loads import LoadKeeper, LoadPoller, LoadSource
from volcano_py.daemon.options import DaemonOptions
from volcano_py.daemon.recheck import recheck_overdue
from volcano_py.daemon.reporting import CycleReporter
from volcano_py.daemon.required_queues import ensure_queues
from volcano_py.daemon.watches import Watches
from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.effects.binder import Binder
from volcano_py.effects.evictor import Evictor
from volcano_py.effects.nominations import NominationWriter
from volcano_py.effects.pod_conditions import PodConditionWriter
from volcano_py.effects.podgroup_status import PodGroupStatusWriter
from volcano_py.effects.queue_gates import GateLifter
from volcano_py.effects.queue_status import QueueStatusWriter
from volcano_py.effects.shard_status import ShardStatusWriter
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.informer import SyncTimeout
from volcano_py.metrics.conf import ConfMetrics
from volcano_py.metrics.cycle import CycleMetrics, WaitingMetrics
from volcano_py.metrics.effects import BindMetrics, RequestMetrics, WriteQueueMetrics
from volcano_py.metrics.evictions import EvictionMetrics
from volcano_py.metrics.exposition import exposition
from volcano_py.metrics.jobs import JobMetrics
from volcano_py.metrics.leader import LeaderMetrics
from volcano_py.metrics.loads import LoadMetrics
from volcano_py.metrics.queue_shares import QueueMetrics
from volcano_py.metrics.state import StateMetrics
from volcano_py.process.leadership import Leadership
from volcano_py.runtime.clock import Clock, RealClock
from volcano_py.runtime.http import OperatorServer
from volcano_py.runtime.signals import Shutdown
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.scheduler import Policy, run_cycle
from volcano_py.writing.events import EventRecorder

log = structlog.get_logger()

_OTHER_CONNECTIONS: Final = 32  # for statuses, events and reads, beside those for binds
_SYNC_REPORT_S: Final = 15.0
_HUNG_CYCLE_S: Final = 300.0
_GARBAGE_THRESHOLDS: Final = (20_000, 10, 10)
"""Hardly anything here is cyclic: looking for cycles after every 700 new objects, as is usual, takes a quarter of the
time in which a full cluster is read and a twentieth of that of a bind, and finds nothing."""


class SchedulerDaemon:
    """One scheduler; run it once. Several in one process share nothing."""

    def __init__(
        self,
        credentials: Credentials,
        policy: Policy,
        options: DaemonOptions | None = None,
        *,
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
        configuration: Configuration | None = None,
        cycle: Cycle = run_cycle,
    ) -> None:
        """Take what cycles run; ``configuration`` is where it came from and may come from anew."""
        self.options = options = options or DaemonOptions()
        self.registry = registry or CollectorRegistry()
        self.ready = asyncio.Event()
        """Set when cycles have begun; with an election, when nothing but the lease is missing."""
        self.leading = asyncio.Event()
        """Set when cycles have begun."""
        self._clock: Clock = clock or RealClock()
        self._rng = random.Random()  # for the spread of delays only; decisions have their seed
        self._acts = False  # whether what writes has begun
        self._state_metrics = StateMetrics(self.registry)
        agent, observer = f"volcano-py/{volcano_py.__version__}", RequestMetrics(self.registry).observe
        self._leadership = Leadership(
            credentials,
            options.lease,
            LeaderMetrics(self.registry),
            clock=self._clock,
            rng=self._rng,
            user_agent=agent,
            observer=observer,
        )
        self.client = ApiClient(
            credentials,
            connections=options.binder.highest + _OTHER_CONNECTIONS,
            user_agent=agent,
            observer=observer,
            obstacle=self._leadership.obstacle,
        )
        self.cache = ClusterCache(
            scheduler_names=(options.scheduler_name,),
            default_queue=options.default_queue,
            queue_admission=options.queue_admission,
            clock=self._clock,
            rng=self._rng,
        )
        if options.shard is not None:
            self.cache.use_shard(options.shard.name, strict=options.shard.strict)
        self._bind_metrics = BindMetrics(self.registry)
        self._eviction_metrics = EvictionMetrics(self.registry)
        self._watches = Watches(
            self.client,
            self.cache,
            self._state_metrics,
            self._bind_metrics,
            clock=self._clock,
            options=options.reflectors,
            shards=options.shard is not None,
        )
        self._barrier = StartBarrier(
            self.client,
            self.cache,
            relist=self._watches.relist_pods,
            outage=self._watches.informers.outage,
            clock=self._clock,
            rng=self._rng,
            patience_s=options.barrier_patience_s,
        )
        self._backpressure = BindBackpressure(options.bind_capacity)
        self._configuration = configuration
        self._conf_metrics = ConfMetrics(self.registry)
        self._decider = CycleRunner(policy, seed=options.seed, clock=self._clock, cycle=cycle)
        self._job_metrics = JobMetrics(self.registry)
        self._reporter = CycleReporter(
            CycleMetrics(self.registry),
            WaitingMetrics(self.registry),
            QueueMetrics(self.registry),
            self._job_metrics,
            self._eviction_metrics,
            self.cache.store,
            clock=self._clock,
            queues_hold=lambda held: self._queue_statuses.put(held),
        )
        self._build_effects()
        self._loads = self._load_keeper()
        self.cycles = CycleLoop(
            self.cache,
            self._decider,
            self._dispatcher.deliver,
            self._backpressure,
            self._reporter,
            self._state_metrics,
            clock=self._clock,
            rng=self._rng,
            period_s=options.period_s,
            debounce_s=options.debounce_s,
        )
        ledger, monotonic = self.cache.ledger, self._clock.monotonic
        self._state_metrics.watch_ledger(lambda: len(ledger), lambda: ledger.oldest_age(monotonic()))
        self._eviction_metrics.watch_assumed(lambda: len(self.cache.evictions))
        self._state_metrics.watch_readiness(lambda: not self.not_ready())

    def _build_effects(self) -> None:
        options, client, clock, rng = self.options, self.client, self._clock, self._rng
        binds, write_queues = self._bind_metrics, WriteQueueMetrics(self.registry)
        self.events = EventRecorder(
            client,
            write_queues,
            component=options.scheduler_name,
            clock=clock,
            rng=rng,
            hold=lambda: self.binder.busy,
            options=options.events,
        )
        self.cache.on_unreadable(self._tell_unreadable)
        self._conditions = PodConditionWriter(
            client,
            write_queues,
            clock=clock,
            rng=rng,
            version_of=self._watches.pod_version,
            waits=self._watches.waits,
            hold=lambda: self.binder.busy,
            on_written=lambda condition: self.events.record(announcements.waiting(condition)),
            options=options.pod_conditions,
        )
        self._groups = PodGroupStatusWriter(
            client,
            write_queues,
            clock=clock,
            rng=rng,
            version_of=self._watches.group_version,
            shown=self._watches.group_without_conditions,
            hold=lambda: self.binder.busy,
            options=options.group_statuses,
        )
        answers = BindAnswers(self.cache, self._backpressure, self._conditions, self.events, binds, clock=clock)
        self.binder = Binder(
            client,
            answers,
            binds,
            clock=clock,
            rng=rng,
            options=options.binder,
            objection=self.cache.objection_to_sending,
        )
        self.evictor = Evictor(
            client,
            EvictionAnswers(self.cache, self.events, clock=clock),
            self._eviction_metrics,
            scheduler_name=options.scheduler_name,
            clock=clock,
            rng=rng,
            options=options.evictor,
        )
        self._nominations = NominationWriter(
            client,
            write_queues,
            clock=clock,
            rng=rng,
            waits=self._watches.waits,
            on_refused=self.cache.nomination_failed,
            options=options.nominations,
        )
        self._gates = GateLifter(
            client, write_queues, clock=clock, rng=rng, waits=self._watches.waits, options=options.queue_gates
        )
        self._queue_statuses = QueueStatusWriter(
            client, write_queues, clock=clock, rng=rng, shown=self.cache.queues.held.get, options=options.queue_statuses
        )
        self._shard_status = self._shard_status_writer(write_queues)
        self._dispatcher = Dispatcher(
            self.cache,
            self._backpressure,
            self.binder,
            self.evictor,
            self._nominations,
            self._gates,
            self._groups,
            self._conditions,
            self.events,
            binds,
            self._eviction_metrics,
            self._job_metrics,
            clock=clock,
        )

    def _shard_status_writer(self, write_queues: WriteQueueMetrics) -> ShardStatusWriter | None:
        options, facts = self.options, self.cache.store.facts
        if options.shard is None:
            return None
        name = options.shard.name
        return ShardStatusWriter(
            self.client,
            write_queues,
            name,
            clock=self._clock,
            rng=self._rng,
            own=lambda: facts.node_shard(name),
            shard=lambda: facts.shard,
            options=options.shard_status,
        )

    def _load_keeper(self) -> LoadKeeper:
        metrics, cache, clock = LoadMetrics(self.registry), self.cache, self._clock

        def poller(source: LoadSource, interval_s: float) -> LoadPoller:
            return LoadPoller(
                source, cache.store.nodes.names, cache.measured, metrics, clock=clock, interval_s=interval_s
            )

        return LoadKeeper(lambda: self._decider.policy.node_metrics, self.client, poller, clock=clock)

    # Life

    async def run(self, shutdown: Shutdown) -> int:
        """Schedule until asked to end; return the exit code: 0 after an orderly end, 1 if forced or the lease is lost.

        Raises AddressInUse before anything has begun, and TaskFailed if a part of the process dies of a bug.
        """
        if self.options.freeze_garbage:
            gc.set_threshold(*_GARBAGE_THRESHOLDS)
        async with AsyncExitStack() as stack:
            stack.callback(self._decider.close)
            for server in self._operator_servers():
                await stack.enter_async_context(server)
            await stack.enter_async_context(self.client)
            await stack.enter_async_context(self._leadership)
            async with Supervisor() as supervisor:
                self._start(supervisor)
                code = await self._run_until_the_end(shutdown)
            if code == 0 and not (self.binder.busy or self.evictor.backlog):
                await self._leadership.give_up()  # not before the last request of ours has ended
            return code

    def not_ready(self) -> list[str]:
        """Return what the start still waits for; empty when cycles have begun, or could if this process led."""
        held = [f"start barrier: {self._barrier.waits_for}"]
        if self.ready.is_set():
            return held if self._barrier.held else []
        return self._watches.informers.not_ready() or held

    @property
    def statuses_waiting(self) -> int:
        """How many PodGroups wait for a write of their status."""
        return self._groups.backlog

    def not_healthy(self) -> list[str]:
        """Return what only a restart would cure."""
        seconds = self.cycles.running_for_s
        return [f"a cycle has been running for {seconds:.0f} s"] if seconds > _HUNG_CYCLE_S else []

    def _operator_servers(self) -> Iterator[OperatorServer]:
        metrics, health = self.options.metrics_address, self.options.health_address
        flags = {metrics: "--listen-address", health: "--healthz-address"}
        pages = debug.routes(self._shown_conf, lambda: self._reporter.last, self._leadership.obstacle)
        for address, flag in flags.items():
            if address is not None:
                yield OperatorServer(
                    address,
                    flag=flag,
                    not_healthy=self.not_healthy,
                    not_ready=self.not_ready,
                    registry=self.registry if address == metrics else None,
                    exposition=exposition,
                    routes=pages,
                    remote_routes=self.options.remote_debug,
                )

    def _start(self, supervisor: Supervisor) -> None:
        self._watches.informers.start(supervisor)
        if self._configuration is not None:
            watch = self._configuration.watch(
                self._take_policy, self._conf_metrics, clock=self._clock, every_s=self.options.conf_poll_s
            )
            supervisor.start("configuration", watch)
        supervisor.start("cycles", self._schedule(supervisor))

    def _shown_conf(self) -> dict[str, Any]:
        if self._configuration is not None:
            return self._configuration.shown()
        return shown_policy(self._decider.policy)

    def _take_policy(self, policy: Policy) -> None:
        self._decider.policy = policy
        self._reporter.new_policy()
        self._loads.wake()
        self.cycles.wake("configuration")

    def _tell_unreadable(self, entry: Unreadable) -> None:
        if self._acts:  # else at the takeover
            self.events.record(announcements.unreadable(entry))

    def _act(self, supervisor: Supervisor) -> None:
        """Let everything begin that writes."""
        clock, options = self._clock, self.options
        self._acts = True
        queues = ensure_queues(
            self.client,
            options.default_queue,
            clock=clock,
            backoff=Backoff(self._rng),
            absent_retry_s=options.reflectors.absent_retry_s,
            outage=self._watches.informers.outage,
        )
        supervisor.start("queues", queues)
        writers = (self.events, self._conditions, self._groups, self._queue_statuses, self._nominations, self._gates)
        for effect in (*writers, self.evictor, self.binder):
            effect.start(supervisor)
        if (shard := self._shard_status) is not None:
            shard.start(supervisor)
            self.cache.on_change(lambda changes: shard.look() if Change.FACT in changes else None)
        recheck = recheck_overdue(
            self.client,
            self.cache,
            self.binder,
            self.evictor,
            self._state_metrics,
            clock=clock,
            every_s=options.recheck_every_s,
        )
        supervisor.start("overdue binds and evictions", recheck)
        supervisor.start("loads of nodes", self._loads.run())
        self._leadership.announce(self.events)
        for entry in self.cache.unreadable():
            self._tell_unreadable(entry)

    async def _schedule(self, supervisor: Supervisor) -> None:
        log.info("scheduler starts", server=self.client.server, version=volcano_py.__version__)
        while True:
            try:
                await self._watches.informers.synced(_SYNC_REPORT_S)
                break
            except SyncTimeout as problem:
                log.warning("still waiting for the first lists", problem=str(problem))
        if self.options.freeze_garbage:
            gc.collect()
            gc.freeze()  # what the first lists brought stays
        if self._leadership.contested:
            self.ready.set()
        await self._leadership.won(supervisor)
        if self._leadership.contested:
            self._watches.informers.reconnect()  # what ended the former leader may have silenced our watches, too
        self._act(supervisor)
        await self._barrier.passed()
        self.ready.set()
        self.leading.set()
        if absent := self._watches.absent():
            log.warning("the API server does not serve these; gangs need them: apply manifests/crds", missing=absent)
        log.info("scheduler is ready", nodes=len(self.cache.store.nodes), bound_pods=self.cache.bound_pods())
        await self.cycles.run()

    async def _run_until_the_end(self, shutdown: Shutdown) -> int:
        """Wait for a request to end, or for the loss of the lease."""
        lost = await self._leadership.lost_before(shutdown.graceful)
        self.cycles.stop()
        if not lost:
            return await self._end(shutdown)
        log.error(
            "the lease is lost: the scheduler ends, and decisions that were not sent are dropped",
            why=self._leadership.why_lost,
            dropped=self.binder.queued,
        )
        return 1

    async def _end(self, shutdown: Shutdown) -> int:
        finishing = asyncio.create_task(self._finish(), name="finish")
        forced = asyncio.create_task(shutdown.force.wait(), name="force")
        try:
            await asyncio.wait([finishing, forced], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (finishing, forced):
                task.cancel()
            await asyncio.gather(finishing, forced, return_exceptions=True)
        return 1 if shutdown.force.is_set() else 0

    async def _finish(self) -> None:
        """Complete the binds and evictions that were decided, then write what there is time for."""
        log.info("completing binds and evictions", binds=self._backpressure.count, evictions=self.evictor.backlog)
        patience_s = self.options.stop_patience_s
        done = await asyncio.gather(self.binder.drained(patience_s), self.evictor.drained(patience_s))
        if not all(done):
            undone = {"binds": self._backpressure.count, "evictions": self.evictor.backlog}
            log.warning("binds or evictions left undone; the next scheduler decides them anew", **undone)
        patience_s = self.options.flush_patience_s
        written = await asyncio.gather(
            *(
                write_queue.drained(patience_s)
                for write_queue in (self._groups, self.events, self._gates, self._nominations, self._queue_statuses)
            )
        )
        log.info("scheduler ends", statuses_written=written[0], events_written=written[1])
