"""One cycle: it takes a snapshot and a policy and returns decisions. It has no clock, no I/O and no randomness."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.evicting.starving import backing_off
from volcano_py.framework.session import Session
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Arrival, Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Decision, Emit
from volcano_py.model.objects import JobKey, TaskTrait
from volcano_py.model.rejections import Reason
from volcano_py.scheduler.policy import Policy
from volcano_py.scheduler.queue_report import report_queues
from volcano_py.scheduler.status import report_jobs, write_statuses
from volcano_py.scheduler.telling import Telling
from volcano_py.scheduler.verifying import Verifying
from volcano_py.snapshot.columns import Snapshot


def run_cycle(
    snapshot: Snapshot,
    policy: Policy,
    clock: CycleClock,
    seed: int,
    memory: Memory,
    emit: Emit,
    *,
    verify_every: int = 0,
) -> tuple[Memory, CycleReport]:
    """Open a session, run the conf's actions in order, close it; return the next memory and a report.

    With ``verify_every`` n, what is kept from earlier cycles about one job in n is verified, at most a few, and other
    jobs in each cycle (`scheduler.verifying`). It changes no decision.

    Each statement sends its decisions to ``emit`` as one batch when it is committed: so the first gang is being bound
    while the second is still being placed. The cycle changes the snapshot. Equal arguments lead to equal decisions.
    """
    opened = clock.stopwatch()
    memory = memory.at(clock.stamp)
    sent = _Sent(emit)
    ssn = Session(
        snapshot=snapshot,
        tiers=policy.instantiate(),
        actions=frozenset(policy.action_names),
        clock=clock,
        seed=seed,
        memory=memory,
        emit=sent,
        static_filters=policy.static_filters,
    )
    try:
        return _run(ssn, sent, policy, memory, opened, verify_every)
    finally:
        ssn.release()


def _run(
    ssn: Session, sent: "_Sent", policy: Policy, memory: Memory, opened: float, verify_every: int
) -> tuple[Memory, CycleReport]:
    clock, report = ssn.state.clock, ssn.state.report
    _block_jobs_without_queue(ssn)
    _block_refused_gangs(ssn)
    report.seconds["open"] = clock.stopwatch() - opened

    verifying = Verifying(ssn, verify_every)
    for name, action in policy.actions:
        started = clock.stopwatch()
        action(ssn)
        if name == "allocate":
            verifying.turns()
        report.seconds[name] = clock.stopwatch() - started

    closing = clock.stopwatch()
    telling = Telling(ssn, policy.static_filters, built_in=policy.built_in)
    looked_at = telling.changed | verifying.unchanged(telling)
    ssn.state.outcome.changed = looked_at
    ssn.state.outcome.reasons.explain(looked_at)
    ssn.close()
    report_jobs(ssn, telling)
    report_queues(ssn)
    write_statuses(ssn, telling)
    arrivals, report.tells_in = ssn.arrivals.at_close()
    following = _next(memory, ssn, arrivals, telling)
    if not sent.batches and _repeats(ssn, policy, memory, following):
        report.repeats_until = clock.holds_until
    verifying.texts(telling)
    report.seconds["close"] = clock.stopwatch() - closing
    return following, report


class _Sent:
    """Passes batches on, and counts them."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.batches = 0

    def __call__(self, batch: tuple[Decision, ...]) -> None:
        """Pass a batch on."""
        self.batches += 1
        self._emit(batch)


def _repeats(ssn: Session, policy: Policy, memory: Memory, following: Memory) -> bool:
    """Say whether a cycle that decided nothing would decide nothing again if cluster and time were the same.

    It would if no plugin failed, no task waits until it may be tried again, and the next cycle remembers what this one
    remembered. Plugins and actions of others are always asked again.
    """
    return (
        policy.built_in
        and not ssn.state.report.failures
        and not (ssn.state.tasks.traits & TaskTrait.BACKING_OFF.value).any()
        and replace(following, cycle=memory.cycle, seen=memory.seen, texts=memory.texts) == memory
    )


def _next(memory: Memory, ssn: Session, arrivals: Mapping[JobKey, Arrival], telling: Telling) -> Memory:
    plans, cooldowns = ssn.pending_evictions.plans, ssn.pending_evictions.cooldowns
    gates = {} if ssn.queue_gates is None else ssn.queue_gates.since
    return memory.next(
        ssn.state.outcome.refusals,
        ssn.state.outcome.announced,
        ssn.state.outcome.enqueued,
        ssn.state.outcome.times,
        ssn.nominated_room.since,
        plans,
        cooldowns,
        gates,
        arrivals,
        _domains(memory, ssn),
        ssn.arrivals.seen,
        telling.texts(),
        telling.remember(),
    )


def _domains(memory: Memory, ssn: Session) -> dict[JobKey, Mapping[str, str]]:
    """Return where the parts of jobs with topologies are or were, for the jobs that still exist."""
    kept = {**memory.domains, **ssn.state.outcome.domains}
    if not kept:
        return {}
    present = {ssn.state.jobs.record(row).key for row in ssn.state.jobs.rules.with_topology.tolist()}
    return {key: parts for key, parts in kept.items() if key in present}


def _block_jobs_without_queue(ssn: Session) -> None:
    jobs = ssn.state.jobs
    # A Python loop over the jobs that name a queue that does not exist.
    for row in np.flatnonzero(jobs.rules.present & (ssn.state.queue_of_job < 0)).tolist():
        record = jobs.record(row)
        text = f'queue "{record.queue}" of PodGroup {record.key} does not exist: create it or change spec.queue'
        problem = ssn.state.facts.unreadable_queues.get(record.queue)
        if problem is not None:
            text = f'queue "{record.queue}" of PodGroup {record.key} is left out: {problem}'
        code = "queue-missing" if problem is None else "queue-unreadable"
        ssn.state.outcome.blocked[row] = Reason("scheduler", code, text)
        if not ssn.state.job(row).n_tasks:  # otherwise its tasks and its status say it
            ssn.announce_refusal(record, keys.EVENT_WARNING, text)


def _block_refused_gangs(ssn: Session) -> None:
    """Block a job if it cannot become ready without its tasks that are backing off."""
    # A Python loop over the jobs whose binds have just failed.
    for row in backing_off(ssn.eviction).tolist():
        if ssn.state.jobs.records[row] is None:
            continue
        job = ssn.state.job(row)
        if ssn.hooks.missing(job) > len(ssn.hooks.pending.of(row)):
            text = "the API server refused to bind pods of this job: they are tried again after a while"
            ssn.state.outcome.blocked[row] = Reason("scheduler", "bind-refused", text)
