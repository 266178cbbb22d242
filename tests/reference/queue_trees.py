"""Crowded clusters whose queues form valid and invalid trees, one for each number."""

from dataclasses import replace
from random import Random

from tests.reference.busy import busy_world
from tests.reference.entitlements import Queue
from tests.reference.world import World, amounts
from volcano_py.model.objects import QueueRecord
from volcano_py.model.resource_lists import ResourceList

LIMITS = ({}, {}, {"cpu": "3072m"}, {"memory": "2Gi", "gpu": 1}, {"cpu": 8, "memory": "4Gi", "pods": 9}, {"gpu": 0})
DESERVED = ({}, {"cpu": "1024m"}, {"cpu": "2048m", "memory": "1Gi"}, {"gpu": 2}, {"pods": 4}, {"cpu": 1, "gpu": 0})
GUARANTEES = ({}, {}, {}, {"cpu": "512m"}, {"cpu": "1024m", "memory": "512Mi"}, {"gpu": 1})


def tree_world(number: int, *, sound: bool = False) -> World:
    """Return the cluster of a number, always the same; a ``sound`` one has jobs only in leaves and no bad parents."""
    random = Random(f"tree {number}")
    world = busy_world(number)
    names = [f"q{row}" for row in range(random.randint(1, 8))]
    parents = {name: random.choice(("", "root", *names[:row])) for row, name in enumerate(names)}
    if not sound and random.random() < 0.5:
        parents[random.choice(names)] = random.choice(("nowhere", *names))
    records = [_queue(random, name, parents[name]) for name in names]
    if random.random() < 0.8:
        records.append(replace(_queue(random, "root", ""), priority=0))
    inner = {"root", *parents.values()}
    usable = [name for name in names if name not in inner] if sound else [*names, "root"]
    jobs = tuple(replace(job, queue=random.choice(usable)) for job in world.jobs)
    return replace(world, queues=tuple(random.sample(records, len(records))), jobs=jobs)


def specs(world: World) -> dict[str, Queue]:
    """Return the queues of a world as the plain reference reads them."""
    return {
        record.name: Queue(
            record.name,
            record.parent,
            *(_amounts(each) for each in (record.capability, record.deserved, record.guarantee)),
        )
        for record in world.queues
    }


def _amounts(written: ResourceList) -> dict[str, float]:
    return {"cpu": written.cpu, "memory": written.memory, **written.scalars}


def _queue(random: Random, name: str, parent: str) -> QueueRecord:
    lists = (ResourceList.of(amounts(**random.choice(kinds))) for kinds in (LIMITS, DESERVED, GUARANTEES))
    capability, deserved, guarantee = lists
    return QueueRecord(
        name,
        parent=parent,
        state=random.choice(("Open", "Open", "Open", "", "Closed")),
        priority=random.choice((0, 0, 0, 5)),
        creation=random.choice((0.0, 1.0)),
        capability=capability,
        deserved=deserved,
        guarantee=guarantee,
    )
