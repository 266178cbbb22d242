"""Random gangs with terms about each other and priorities: whatever was evicted for them, at rest every term holds."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.scenarios.test_inter_pod_terms import HOST, ZONE, apart, even, nodes, together
from tests.scenarios.test_inter_pod_terms_and_evictions import CONF
from volcano_py.testing import Result, Scenario, a_job, a_priority_class

ZONES = ("a", "a", "b", "b", "c")
APPS = ("web", "db", "ml")


def a_random_job(random: Random, number: int) -> tuple[Any, str, dict[str, Any]]:
    app = random.choice(APPS)
    key = random.choice((HOST, HOST, ZONE))
    spec = random.choice(({}, {}, apart(random.choice(APPS), key), together(random.choice(APPS)), even(app)))
    tasks = random.randint(1, 4)
    job = a_job(
        f"j{number}",
        tasks=tasks,
        min_available=random.choice((0, 1, tasks)),
        cpu=random.choice((1, 2)),
        priority_class=random.choice(("low", "low", "high")),
        labels={"app": app},
        annotations={"volcano.sh/preemptable": "true"},
        created=float(number),
        spec=spec,
    )
    return job, app, spec


def run(seed: int) -> tuple[Result, dict[str, tuple[str, dict[str, Any]]]]:
    """Let three batches of jobs arrive and settle; return the last result, and app and spec of each job."""
    random = Random(seed)
    scenario = Scenario(
        *nodes(*ZONES, cpu=4), a_priority_class("low", 1), a_priority_class("high", 9), conf=CONF, seed=seed
    )
    about = {}
    result = Result()
    for batch in range(3):
        made = [a_random_job(random, 4 * batch + number) for number in range(3)]
        about.update({job.group.metadata.name: (app, spec) for job, app, spec in made})
        scenario.add(*(job for job, _, _ in made))
        result = scenario.run()
    return result, about


def domain(node: str, key: str) -> str:
    return node if key == HOST else ZONES[int(node.removeprefix("n"))]


@pytest.mark.parametrize("block", range(3))
def test_at_rest_no_pod_violates_a_required_term(block: int) -> None:
    evicted = placed = 0
    for seed in range(block * 8, block * 8 + 8):
        result, about = run(seed)
        pods = {name: (name.split("-")[0], node) for name, node in result.placements.items()}
        evicted += sum(map(len, result.evictions))
        placed += len(pods)
        for name, (job, node) in pods.items():
            terms = about[job][1].get("affinity", {}).get("podAntiAffinity", {})
            for term in next(iter(terms.values()), []):
                hated, key = term["labelSelector"]["matchLabels"]["app"], term["topologyKey"]
                beside = [
                    other
                    for other, (of, where) in pods.items()
                    if other != name and about[of][0] == hated and domain(where, key) == domain(node, key)
                ]
                assert not beside, (seed, name, beside)
    assert placed > 60
    assert evicted > 0


def test_at_rest_hard_spread_holds_among_pods_with_the_same_constraint() -> None:
    for seed in range(20):
        random = Random(seed)
        jobs = [
            a_job(f"j{number}", tasks=random.randint(1, 3), cpu=1, labels={"app": "web"}, spec=even("web"))
            for number in range(4)
        ]
        placed = Scenario(*nodes(*ZONES, cpu=4), *jobs, conf=CONF, seed=seed).run().placements

        counts = Counter(dict.fromkeys(ZONES, 0))
        counts.update(domain(node, ZONE) for node in placed.values())
        assert max(counts.values()) - min(counts.values()) <= 1, (seed, counts)
