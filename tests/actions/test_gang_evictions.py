"""Actions gangpreempt and gangreclaim on random clusters: whole or not at all, nobody goes who need not, and no budget,
guarantee or pod of the cluster's own is broken.

Single cases stand as rows in tests/conformance/rows/scheduler/gangpreempt.json and gangreclaim.json.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Decision, Evict, Nominate
from volcano_py.scheduler import run_cycle
from volcano_py.testing import (
    Scenario,
    a_budget,
    a_cluster,
    a_group,
    a_job,
    a_node,
    a_pod,
    a_policy,
    a_priority_class,
    a_queue,
)

PLUGINS = {
    "gangpreempt": ["priority", "gang", "conformance", "pdb", "predicates"],
    "gangreclaim": ["gang", "conformance", "pdb", "predicates", "proportion"],
}
SEEDS = range(12)
CRITICAL = {"priorityClassName": "system-node-critical"}


CHANCES = {"odd": 0.25, "even": 0.25, "other": 0.45, "critical": 0.05}  # of labels


class World:
    """Jobs at random on four nodes, and a gang of a higher priority or of another queue that wants in.

    With ``protected`` budgets cover half of the pods, some are critical, and their queue has a guarantee.
    """

    def __init__(self, seed: int, action: str, *, protected: bool = False) -> None:
        rng, self._fate = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
        self.action = action
        self.free = {f"n{i}": 8 for i in range(4)}
        self.protected = protected
        self.guaranteed = int(self._fate.integers(8, 33))  # cores
        self.allowed = {"odd": int(self._fate.integers(0, 3)), "even": int(self._fate.integers(0, 4))}
        self.apps: dict[str, str] = {}  # pod -> label, the name of the budget that covers it if there is such a one
        self.queues = [a_queue("red"), a_queue("blue", guarantee={"cpu": self.guaranteed} if protected else {})]
        self.minimum: dict[str, int] = {}
        self.pods: dict[str, tuple[str, int, str]] = {}  # name -> job, cpu, node
        self.objects: list[Any] = [a_node(name, cpu=cpu) for name, cpu in self.free.items()]
        self.objects += [a_priority_class("low", 1), a_priority_class("high", 10)]
        if protected:
            self.objects += [
                a_budget(name, labels={"app": name}, allowed=count) for name, count in self.allowed.items()
            ]
        for number in range(30):
            tasks, cpu = int(rng.integers(1, 5)), int(rng.integers(1, 4))
            places = [name for name, free in self.free.items() for _ in range(free // cpu)]
            if len(places) >= tasks:
                self._run(f"job-{number}", cpu, [str(one) for one in rng.permutation(places)[:tasks]], rng)
        self.size, self.needs = int(rng.integers(1, 5)), int(rng.integers(1, 6))
        gang = {"queue": "red", "priority_class": "high", "phase": "Inqueue", "created": 99}
        self.objects.append(a_job("gang", tasks=self.size, cpu=self.needs, **gang))

    def _run(self, job: str, cpu: int, nodes: list[str], rng: np.random.Generator) -> None:
        self.minimum[job] = int(rng.integers(1, len(nodes) + 1))
        queue = "red" if self.action == "gangpreempt" else "blue"
        priority = "high" if rng.random() < 0.2 else "low"
        self.objects.append(
            a_group(job, min_available=self.minimum[job], queue=queue, priority_class=priority, phase="Running")
        )
        for index, node in enumerate(nodes):
            name = f"{job}-{index}"
            self.apps[name] = str(self._fate.choice([*CHANCES], p=[*CHANCES.values()]))
            spec = CRITICAL if self.protected and self.apps[name] == "critical" else {}
            self.objects.append(a_pod(name, group=job, cpu=cpu, node=node, labels={"app": self.apps[name]}, spec=spec))
            self.pods[name] = (job, cpu, node)
            self.free[node] -= cpu

    def decide(self) -> tuple[set[str], dict[str, str]]:
        """Return who is evicted, and the nodes that the gang's tasks are promised."""
        decisions: list[Decision] = []
        cluster = a_cluster(*self.objects, queues=self.queues)
        policy = a_policy(self.action, PLUGINS[self.action])
        run_cycle(cluster.snapshot(), policy, CycleClock(), 0, Memory(), lambda batch: decisions.extend(batch))
        promised = {one.task.name: one.node for one in decisions if isinstance(one, Nominate)}
        return {one.task.name for one in decisions if isinstance(one, Evict)}, promised

    def room(self, evicted: set[str]) -> dict[str, int]:
        """Return what is free on each node once these are gone."""
        gained = Counter[str]()
        for name in evicted:
            _, cpu, node = self.pods[name]
            gained[node] += cpu
        return {node: free + gained[node] for node, free in self.free.items()}

    def broken(self, evicted: set[str]) -> list[str]:
        """Return what must not be broken and is."""
        found = [f"{name} is critical" for name in sorted(evicted) if self.apps[name] == "critical"]
        lost = Counter(self.apps[name] for name in evicted)
        found += [f"budget {name} allows {count}" for name, count in self.allowed.items() if lost[name] > count]
        if evicted and self.action == "gangreclaim":
            held = sum(cpu for name, (_, cpu, _) in self.pods.items() if name not in evicted)
            found += [f"{held} are left of {self.guaranteed}"] if held < self.guaranteed else []
        return found

    def units(self, evicted: set[str]) -> list[set[str]]:
        """Return what had to go together: all of a job that lost its minimum, else each pod by itself."""
        units: list[set[str]] = []
        for job, minimum in self.minimum.items():
            mine = {name for name, (owner, _, _) in self.pods.items() if owner == job}
            lost = mine & evicted
            units += [lost] if lost and len(mine - lost) < minimum else [{name} for name in sorted(lost)]
        return units


@pytest.fixture(params=[*PLUGINS])
def action(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_the_random_cases_lead_to_enough_evictions(action: str):
    worlds = [World(seed, action) for seed in SEEDS]
    took = [world.decide()[0] for world in worlds]

    assert sum(map(bool, took)) >= len(SEEDS) // 3
    assert any(len(unit) > 1 for world, evicted in zip(worlds, took, strict=True) for unit in world.units(evicted))


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_keep_their_minimum_or_are_evicted_as_a_whole(action: str, seed: int):
    world = World(seed, action)
    evicted, _ = world.decide()

    for job, minimum in world.minimum.items():
        mine = {name for name, (owner, _, _) in world.pods.items() if owner == job}
        left = mine - evicted
        assert not left or len(left) >= minimum, f"{job} keeps {sorted(left)} of {sorted(mine)}, minimum {minimum}"


def test_no_budget_guarantee_or_critical_pod_is_broken(action: str):
    taken, spoilt = 0, set[str]()
    for seed in range(2 * len(SEEDS)):
        world = World(seed, action, protected=True)
        evicted, _ = world.decide()
        taken += bool(evicted)
        assert world.broken(evicted) == [], f"seed {seed}: {sorted(evicted)}"
        spoilt |= {text.split()[1] for text in world.broken(World(seed, action).decide()[0])}

    assert taken >= len(SEEDS) // 3
    assert len(spoilt) > 1, "without protection nothing would be broken: the clusters are not worth looking at"


@pytest.mark.parametrize("seed", SEEDS)
def test_all_victims_together_make_room_for_the_whole_gang_and_each_is_needed(action: str, seed: int):
    world = World(seed, action)
    evicted, promised = world.decide()
    if not evicted:
        assert promised == {}
        return

    load = Counter({node: count * world.needs for node, count in Counter(promised.values()).items()})
    assert len(promised) == world.size
    room = world.room(evicted)
    assert all(load[node] <= room[node] for node in load)
    for unit in world.units(evicted):
        without = world.room(evicted - unit)
        assert any(load[node] > without[node] for node in load), f"{sorted(unit)} need not go"


@pytest.mark.parametrize("seed", SEEDS)
def test_without_victims_the_gang_already_fits_or_could_not_fit(action: str, seed: int):
    world = World(seed, action)
    evicted, _ = world.decide()
    if evicted or action == "gangreclaim":  # there shares of queues forbid as well
        return

    low = {name for name, (job, _, _) in world.pods.items() if _priority(world, job) == "low"}
    now, at_most = (sum(max(free, 0) // world.needs for free in world.room(gone).values()) for gone in (set(), low))
    assert now >= world.size or at_most < world.size


@pytest.mark.parametrize("seed", SEEDS)
def test_after_evictions_the_gang_runs_and_nothing_more_changes(action: str, seed: int):
    world = World(seed, action)
    scenario = Scenario(
        *world.objects,
        queues=world.queues,
        actions=f"enqueue, allocate, backfill, {action}",
        plugins=PLUGINS[action],
    )

    result = scenario.run()

    if result.evictions:
        assert sum(name.startswith("gang-") for name in result.placements) == world.size
    again = [pod for batch in result.evictions for pod in batch]
    assert len(again) == len(set(again)), "somebody went twice"


def test_a_gang_that_already_fits_evicts_nobody(action: str):
    queue = "red" if action == "gangpreempt" else "blue"
    scenario = Scenario(
        *(a_node(name, cpu=cpu) for name, cpu in (("n1", 2), ("n2", 1))),
        *(a_priority_class(name, value) for name, value in (("low", 1), ("high", 10))),
        a_job("low", min_available=0, cpu=1, node="n1", queue=queue, priority_class="low", phase="Running"),
        a_job("gang", tasks=2, cpu=1, queue="red", priority_class="high"),
        queues=[a_queue("red"), a_queue("blue")],
        actions=f"enqueue, {action}, allocate",
        plugins=PLUGINS[action],
    )

    assert scenario.run().evictions == []


@pytest.mark.parametrize(("held", "evicted"), [pytest.param(2, 0, id="its-part"), pytest.param(3, 3, id="more")])
def test_a_queue_within_its_share_loses_nothing_to_a_gang_of_another(held: int, evicted: int):
    stays = {"volcano.sh/preemptable": "false"}
    scenario = Scenario(
        a_node("n1", cpu=6),
        a_job("gang", tasks=held, cpu=1, node="n1", queue="b", phase="Running"),
        a_job("fixed", tasks=6 - held, cpu=1, node="n1", queue="c", phase="Running", annotations=stays),
        a_job("new", tasks=2, cpu=1, queue="a"),
        queues=[a_queue(name) for name in "abc"],
        actions="enqueue, allocate, gangreclaim",
        plugins=PLUGINS["gangreclaim"],
    )

    assert len(scenario.run().evicted) == evicted


def _priority(world: World, job: str) -> str:
    return next(
        one.spec.priority_class_name for one in world.objects if hasattr(one, "spec") and one.metadata.name == job
    )
