"""The invariants: what must hold after every step or at rest. See docs/simulation.md for how to add one.

| module | what it looks at |
|---|---|
| `binds` | one Binding per pod; room, nodes and takeovers by what the deciding scheduler had been shown |
| `leadership`, `lease`, `handover` | who may write, who loses a lease, and how it passes to the next |
| `caches`, `memory`, `knowledge` | what programs know: as shown at every second, true at rest, nothing forgotten |
| `evictions`, `plans` | nobody is evicted for nothing |
| `jobs`, `workloads`, `statuses`, `texts` | jobs, PodGroups and queues, and what users read about them |
| `commands` | a command takes effect before it is deleted, and none stays |
| `tempo`, `bounds` | how often requests are repeated; queues, heaps, tasks |
| `processes`, `rest` | nothing fails, everything ends, and nothing is left to do |
"""

from tests.simulation.invariants import (
    assumptions,
    binds,
    bounds,
    caches,
    commands,
    evictions,
    handover,
    jobs,
    knowledge,
    leadership,
    lease,
    memory,
    plans,
    processes,
    rest,
    statuses,
    tempo,
    texts,
    under_way,
    versions,
    workloads,
)
from tests.simulation.invariants.invariant import Invariant

INVARIANTS: dict[str, type[Invariant]] = {
    each.name: each
    for each in (
        rest.Rest,
        processes.NoFailure,
        processes.ProgramsEndForAReason,
        processes.RequestsEnd,
        binds.OneBinding,
        binds.WithinAllocatable,
        binds.BindsToOpenNodes,
        binds.LeadersKnowAllBinds,
        assumptions.NoStaleBind,
        leadership.OneLeader,
        handover.FormerHolderEnds,
        handover.ReleasedAtLast,
        memory.NothingIsForgotten,
        caches.CacheIsShown,
        caches.CacheIsTrue,
        caches.WatchesAreUpToDate,
        evictions.EvictionsHelp,
        plans.PlansMakeRoom,
        jobs.JobsKeepTheirTable,
        jobs.OnePodPerIndex,
        jobs.JobsHaveTheirPods,
        jobs.TasksWaitForOthers,
        statuses.StatusesAreTrue,
        versions.PodsOfThePresent,
        commands.CommandsTakeEffect,
        under_way.NothingUnderWay,
        workloads.OneGroupPerOwner,
        workloads.GroupPhases,
        bounds.QueuesAreBounded,
        bounds.TasksAreBounded,
        knowledge.OverdueIsAskedAbout,
        tempo.RefusalsAreHeeded,
        tempo.RetryAfterIsHonoured,
        texts.BoundIsScheduled,
        texts.WaitingPodsSayWhy,
        lease.LeaseIsKept,
        rest.NothingLeftToDecide,
    )
}
"""All invariants by name."""

__all__ = ["INVARIANTS", "Invariant"]
