"""A cycle on a written-down cluster, and what came of it."""

from dataclasses import dataclass

from tests.reference.world import World
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Bind, Decision, RecordEvent, SetPodCondition, SetPodGroupStatus
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.snapshot.store import ClusterStore

DEFAULT = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
"""
WITH_BINPACK = DEFAULT + "  - name: binpack\n"
WITHOUT_GANG = DEFAULT.replace("  - name: gang\n", "")


@dataclass(frozen=True)
class Outcome:
    """What a cycle decided."""

    batches: list[tuple[Decision, ...]]
    report: CycleReport
    memory: Memory

    @property
    def decisions(self) -> list[Decision]:
        return [decision for batch in self.batches for decision in batch]

    @property
    def binds(self) -> list[tuple[str, str]]:
        """(pod, node) in the order in which they were decided."""
        return [(one.task.name, one.node) for one in self.decisions if isinstance(one, Bind)]

    @property
    def gangs(self) -> list[list[str]]:
        """Names of the pods of every batch of binds."""
        batches = ([one.task.name for one in batch if isinstance(one, Bind)] for batch in self.batches)
        return [batch for batch in batches if batch]

    @property
    def messages(self) -> dict[str, str]:
        """Pod -> message of PodScheduled=False."""
        return {one.task.name: one.message for one in self.decisions if isinstance(one, SetPodCondition)}

    @property
    def reasons(self) -> dict[str, str]:
        """Pod -> reason of PodScheduled=False."""
        return {one.task.name: one.reason for one in self.decisions if isinstance(one, SetPodCondition)}

    @property
    def groups(self) -> dict[str, SetPodGroupStatus]:
        """PodGroup -> the status that is written."""
        return {one.job.name: one for one in self.decisions if isinstance(one, SetPodGroupStatus)}

    @property
    def events(self) -> list[tuple[str, str, str, str]]:
        """(object, type, reason, message)."""
        return [(one.name, one.type, one.reason, one.message) for one in self.decisions if isinstance(one, RecordEvent)]


def a_policy(text: str = DEFAULT, **tables: object) -> Policy:
    """Return the policy of a configuration; ``tables`` may replace the built-in plugins and actions."""
    return resolve(parse_conf(text, "test.yaml"), **tables)  # type: ignore[arg-type]


def cycle(
    cluster: World | ClusterStore,
    policy: Policy | str = DEFAULT,
    *,
    seed: int = 0,
    memory: Memory | None = None,
    now: float = 0.0,
    verify_every: int = 0,
) -> Outcome:
    """Run one cycle."""
    store = cluster.store() if isinstance(cluster, World) else cluster
    batches: list[tuple[Decision, ...]] = []
    chosen = a_policy(policy) if isinstance(policy, str) else policy
    snapshot, clock, before = store.snapshot(), CycleClock(now), memory or Memory()
    after, report = run_cycle(snapshot, chosen, clock, seed, before, batches.append, verify_every=verify_every)
    return Outcome(batches, report, after)
