"""Print what a cycle decides about a cluster of random objects: run in processes with different hash seeds."""

import sys
from random import Random

from tests.reference.social import social_world
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from tests.scheduler.running import WITH_BINPACK, Outcome, a_policy, cycle
from volcano_py.model.objects import QueueRecord, TaintRecord
from volcano_py.model.shape import NodeTerm, Requirement, Tolerance
from volcano_py.model.statuses import TaskStatus


def a_cluster(seed: int) -> World:
    """Return a cluster with ties, labels, taints, several extended resources and more gangs than room."""
    random = Random(seed)
    extended = [f"example.com/{letter}" for letter in "fgh"]
    nodes = [
        a_node(
            f"node-{index}",
            cpu=random.choice((8, 16)),
            memory=random.choice(("32Gi", "64Gi")),
            labels={"zone": random.choice("abc"), "disk": random.choice(("ssd", "hdd"))},
            taints=[TaintRecord("spot", "", "NoSchedule")] if random.random() < 0.3 else [],
            **{name: random.choice((2, 4)) for name in random.sample(extended, 2)},
        )
        for index in range(12)
    ]
    jobs, tasks = [], []
    for number in range(15):
        name, count = f"job{number}", random.randint(1, 8)
        shape = a_shape(
            cpu=random.choice(("500m", "1", "2", "3")),
            memory=random.choice(("1Gi", "3Gi", None)),
            node_affinity=(NodeTerm((Requirement("zone", "In", tuple("ab")),)),) if random.random() < 0.3 else None,
            tolerations=[Tolerance("spot", "Exists")] if random.random() < 0.5 else [],
            **({random.choice(extended): 1} if random.random() < 0.5 else {}),
        )
        jobs.append(a_job(name, queue=random.choice(("q1", "q2")), min_available=random.randint(1, count)))
        tasks += tasks_of(name, count, shape, role=random.choice(("", "worker")))
        tasks += tasks_of(name, 1, shape, first=90, status=TaskStatus.RELEASING, node=random.choice(nodes).name)
    return World(tuple(nodes), (QueueRecord("q1"), QueueRecord("q2")), tuple(jobs), tuple(tasks))


def decided(outcome: Outcome) -> str:
    """Return everything a cycle decided and reported, as text."""
    report = outcome.report
    counts = (report.tasks_placed, report.jobs_committed, report.jobs_discarded, report.jobs_enqueued)
    return f"{outcome.batches!r}\n{sorted(report.jobs.items())!r}\n{counts!r}\n{outcome.memory!r}"


if __name__ == "__main__":
    for cluster_seed in map(int, sys.argv[1:]):
        for world in (a_cluster(cluster_seed), social_world(cluster_seed)):
            sys.stdout.write(decided(cycle(world, a_policy(WITH_BINPACK), seed=cluster_seed)) + "\n")
