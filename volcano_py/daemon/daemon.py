"""The scheduler process: its parts, and what it starts and stops in the life of a process.

:mod:`volcano_py.process.lifecycle` says how it starts, stands by and ends. In between, a scheduler does this:

lead      start the writers, wait for the start barrier, run cycles
end       start no further cycle, complete the binds and evictions that were decided, write statuses and events
"""

import random
from collections.abc import Iterable
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry

import volcano_py
from volcano_py.api import keys
from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.unreadable_objects import Unreadable
from volcano_py.daemon import announcements, debug
from volcano_py.daemon.barrier import StartBarrier
from volcano_py.daemon.configuration import Configuration, shown_policy
from volcano_py.daemon.cycle_loop import CycleLoop
from volcano_py.daemon.cycle_runner import Cycle, CycleRunner
from volcano_py.daemon.dispatch import Dispatcher
from volcano_py.daemon.loads import LoadKeeper, LoadPoller, LoadSource
from volcano_py.daemon.metrics import DaemonMetrics
from volcano_py.daemon.options import DaemonOptions
from volcano_py.daemon.recheck import recheck_overdue
from volcano_py.daemon.recovery import PromiseRecovery
from volcano_py.daemon.reminders import Reminders
from volcano_py.daemon.reporting import CycleReporter
from volcano_py.daemon.required_queues import ensure_queues
from volcano_py.daemon.watches import Watches
from volcano_py.daemon.writers import WriterBuilder
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.credentials import Credentials
from volcano_py.metrics.exposition import exposition
from volcano_py.process.context import ProcessContext
from volcano_py.process.lifecycle import Lifecycle
from volcano_py.process.operator_pages import OperatorPages
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.signals import Shutdown
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.scheduler import Policy, run_cycle

log = structlog.get_logger()

_OTHER_CONNECTIONS: Final = 32  # for statuses, events and reads, beside those for binds
_HUNG_CYCLE_S: Final = 300.0


class SchedulerDaemon:
    """One scheduler; run it once. Several in one process share nothing."""

    def __init__(
        self,
        credentials: Credentials,
        policy: Policy,
        options: DaemonOptions | None = None,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        registry: CollectorRegistry | None = None,
        configuration: Configuration | None = None,
        cycle: Cycle = run_cycle,
    ) -> None:
        """Take the policy of the cycles; ``configuration`` is its source and may replace it."""
        self.options = options = options or DaemonOptions()
        self._configuration = configuration
        self._context = context = ProcessContext.build(
            credentials,
            user_agent=f"{keys.PROGRAM}/{volcano_py.__version__}",
            lease=options.lease,
            connections=options.binder.highest + _OTHER_CONNECTIONS,
            clock=clock,
            rng=rng,
            registry=registry,
        )
        self.registry, self.client = context.registry, context.client
        self._metrics = metrics = DaemonMetrics.of(context.registry)
        self.cache = cache = _cache(context, options)
        self._watches = _watches(context, options, cache, metrics)
        self._writers = WriterBuilder(context, options, cache, self._watches, metrics).build()
        self.binder, self.evictor = self._writers.binder, self._writers.evictor
        self.cycles = self._cycle_loop(
            CycleRunner(policy, seed=options.seed, clock=context.clock, rng=context.rng, cycle=cycle)
        )
        self._wait_for_volumes(policy)
        self._loads = self._load_keeper()
        self._barrier = self._start_barrier()
        self._recovery = PromiseRecovery(
            cache,
            self._writers.preparer,
            owner=options.scheduler_name,
            clock=context.clock,
            every_s=options.preparer.recover_every_s,
        )
        self._lifecycle = Lifecycle(context, self._watches.informers, freeze_garbage=options.freeze_garbage)
        self.ready = self._lifecycle.ready
        """Set when cycles have begun; with an election, already when only the lease is missing."""
        self.leading = self._lifecycle.leading
        """Set when cycles have begun."""
        self._watch_state()

    def _cycle_loop(self, runner: CycleRunner) -> CycleLoop:
        context, options, writers = self._context, self.options, self._writers
        self.cache.queues.on_allocated = writers.queue_statuses.compare
        self._reporter = CycleReporter(
            self._metrics, self.cache.store, clock=context.clock, queues_hold=writers.queue_statuses.put
        )
        return CycleLoop(
            self.cache,
            runner,
            Dispatcher(self.cache, writers, self._metrics, clock=context.clock).deliver,
            writers.backpressure,
            self._reporter,
            clock=context.clock,
            rng=context.rng,
            period_s=options.period_s,
            debounce_s=options.debounce_s,
        )

    def _load_keeper(self) -> LoadKeeper:
        metrics, cache, cycles, clock = self._metrics.loads, self.cache, self.cycles, self._context.clock

        def poller(source: LoadSource, interval_s: float) -> LoadPoller:
            return LoadPoller(
                source, cache.store.nodes.names, cache.measured, metrics, clock=clock, interval_s=interval_s
            )

        return LoadKeeper(lambda: cycles.policy.node_metrics, self.client, poller, clock=clock)

    def _start_barrier(self) -> StartBarrier:
        return StartBarrier(
            self.client,
            self.cache,
            relist=self._watches.relist_pods,
            delivered=self._watches.pods_delivered,
            outage=self._watches.informers.outage,
            clock=self._context.clock,
            rng=self._context.rng,
            patience_s=self.options.barrier_patience_s,
        )

    def _watch_state(self) -> None:
        """Let metrics read the ledgers and the readiness."""
        binds, evictions = self.cache.binds.ledger, self.cache.evictions.ledger
        monotonic = self._context.clock.monotonic
        preparing = self._writers.preparer.holds
        self._metrics.state.watch_ledger(
            lambda: len(binds), lambda: binds.oldest_age(monotonic(), lambda uid: not preparing(uid))
        )
        self._metrics.evictions.watch_assumed(lambda: len(evictions))
        self._metrics.state.watch_readiness(lambda: not self.not_ready())

    # What operators see

    def not_ready(self) -> list[str]:
        """Return what the start waits for, or that all cycles fail; empty if they work or only the lease is missing."""
        blocked = [f"start barrier: {self._barrier.waits_for}"]
        if self.ready.is_set():
            broken = self.cycles.broken
            return blocked if self._barrier.blocked else [broken] if broken else []
        return self._watches.informers.not_ready() or blocked

    def not_healthy(self) -> list[str]:
        """Return the problems that only a restart can solve."""
        seconds = self.cycles.running_for_s
        return [f"a cycle has been running for {seconds:.0f} s"] if seconds > _HUNG_CYCLE_S else []

    @property
    def statuses_waiting(self) -> int:
        """How many PodGroups wait for a write of their status."""
        return self._writers.groups.backlog

    def _pages(self) -> OperatorPages:
        return OperatorPages(
            self.options.metrics_address,
            self.options.health_address,
            self.not_ready,
            self.not_healthy,
            self._exposition,
            routes=debug.routes(self._shown_conf, lambda: self.cycles.last, self._context.leadership.obstacle),
            remote_routes=self.options.remote_debug,
        )

    def _exposition(self, registry: CollectorRegistry) -> Iterable[bytes]:
        self._reporter.sweep()
        return exposition(registry)

    def _shown_conf(self) -> dict[str, Any]:
        if self._configuration is not None:
            return self._configuration.shown()
        return shown_policy(self.cycles.policy)

    # Life

    async def run(self, shutdown: Shutdown) -> int:
        """Schedule until asked to end; return the exit code: 0 after an orderly end, 1 if forced or the lease is lost.

        Raises AddressInUse before anything has begun, and TaskFailed if a part of the process fails because of a bug.
        """
        try:
            return await self._lifecycle.run(self, self._pages(), shutdown)
        finally:
            self.cycles.close()

    def start(self, services: Supervisor) -> None:
        """Watch the configuration."""
        log.info("scheduler starts", server=self.client.server, version=volcano_py.__version__)
        if self._configuration is not None:
            watch = self._configuration.watch(
                self._use, self._metrics.conf, clock=self._context.clock, every_s=self.options.conf_poll_s
            )
            services.start("configuration", watch)

    async def lead(self, _: Supervisor, services: Supervisor) -> None:
        """Start the writers, wait for the start barrier, and start the cycles.

        The loop of the cycles ends by itself when stopped, so that a cycle that is under way still reports.
        """
        self._start_writing(services)
        await self._barrier.passed()
        if absent := self._watches.absent():
            log.warning("the API server does not serve these; gangs need them: apply manifests/crds", missing=absent)
        await self._recovery.at_start()
        log.info("scheduler is ready", nodes=len(self.cache.store.nodes), bound_pods=self.cache.bound_pods())
        services.start("promises", self._recovery.run())
        services.start("cycles", self.cycles.run())

    def stop(self, why_lost: str | None) -> None:
        """Start no further cycle, and ignore further decisions of the running one."""
        self.cycles.stop()
        if why_lost is not None:
            log.error(
                "the lease is lost: the scheduler ends, and decisions that were not sent are dropped",
                why=why_lost,
                dropped=self.binder.queued,
            )

    async def drain(self) -> bool:
        """Complete the decided binds and evictions, then write as much as the time allows."""
        writers = self._writers
        log.info("completing binds and evictions", **writers.under_way())
        if not await writers.completed(self.options.stop_patience_s):
            undone = writers.under_way()
            log.warning("binds or evictions left undone; the next scheduler decides them anew", **undone)
        written = await writers.flushed(self.options.flush_patience_s)
        log.info("scheduler ends", statuses_written=written.statuses, events_written=written.events)
        return not writers.busy

    def _start_writing(self, services: Supervisor) -> None:
        """Start everything that writes or serves writes."""
        self._writers.start(services)
        if (shard := self._writers.shard_status) is not None:
            self.cache.on_change(lambda changes: shard.look() if Change.FACT in changes else None)
        services.start("queues", self._required_queues())
        services.start("overdue binds and evictions", self._recheck())
        services.start("loads of nodes", self._loads.run())
        reminders = Reminders(self.cache.store, self._writers.events.record, clock=self._context.clock)
        services.start("reminders", reminders.run())
        self._context.leadership.announce(self._writers.events)
        self.cache.on_unreadable(self._record_unreadable)
        for entry in self.cache.unreadable():
            self._record_unreadable(entry)

    async def _required_queues(self) -> None:
        await ensure_queues(
            self.client,
            self.options.default_queue,
            clock=self._context.clock,
            backoff=Backoff(self._context.rng),
            absent_retry_s=self.options.reflectors.absent_retry_s,
            outage=self._watches.informers.outage,
            exists=lambda name: name in self.cache.queues.allocated,
        )

    async def _recheck(self) -> None:
        await recheck_overdue(
            self.client,
            self.cache,
            self._writers,
            self.evictor,
            self._writers.nominations,
            self._metrics.state,
            clock=self._context.clock,
            every_s=self.options.recheck_every_s,
        )

    def _use(self, policy: Policy) -> None:
        """Take a changed configuration."""
        self.cycles.use(policy)
        self._wait_for_volumes(policy)
        self._loads.wake()

    def _wait_for_volumes(self, policy: Policy) -> None:
        if policy.volume_wait_s is not None:
            self._writers.preparer.wait_s = policy.volume_wait_s

    def _record_unreadable(self, entry: Unreadable) -> None:
        self._writers.events.record(announcements.unreadable(entry))


def _cache(context: ProcessContext, options: DaemonOptions) -> ClusterCache:
    cache = ClusterCache(
        scheduler_names=(options.scheduler_name,),
        default_queue=options.default_queue,
        queue_admission=options.queue_admission,
        only_unschedulable=options.pod_conditions.only_unschedulable,
        ignored_provisioners=options.ignored_provisioners,
        clock=context.clock,
        rng=context.rng,
    )
    if options.shard is not None:
        cache.use_shard(options.shard.name, strict=options.shard.strict)
    return cache


def _watches(context: ProcessContext, options: DaemonOptions, cache: ClusterCache, metrics: DaemonMetrics) -> Watches:
    return Watches(
        context.client,
        cache,
        metrics.state,
        metrics.binds,
        clock=context.clock,
        rng=context.rng,
        options=options.reflectors,
        shards=options.shard is not None,
    )
