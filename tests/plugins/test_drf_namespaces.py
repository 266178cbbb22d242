from dataclasses import replace
from random import Random

import numpy as np

from tests.framework.sessions import a_session
from tests.plugins.test_undo import evict_something, place_something
from tests.reference.busy import busy_world
from tests.reference.world import World
from volcano_py.framework.contract.extension_points import NamespaceOrder
from volcano_py.framework.session import Session
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import ALLOCATED_STATUSES, TaskStatus
from volcano_py.plugins.drf import Drf

COUNTED = (*ALLOCATED_STATUSES, TaskStatus.PIPELINED)


def in_namespaces(number: int) -> World:
    """Return a crowded cluster whose jobs are in several namespaces."""
    world, random = busy_world(number), Random(number)
    home = {job.key.name: random.choice("ab") for job in world.jobs}
    jobs = tuple(replace(job, key=JobKey(home[job.key.name], job.key.name)) for job in world.jobs)
    tasks = tuple(
        replace(task, record=task.record.__class__(**{**_fields(task.record), "namespace": home[task.record.job]}))
        for task in world.tasks
    )
    return replace(world, jobs=jobs, tasks=tasks)


def _fields(record: object) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__struct_fields__}  # type: ignore[attr-defined]


def held(ssn: Session, queue: str) -> dict[str, float]:
    """Return the dominant shares of namespaces in a queue, counted task by task."""
    sums: dict[str, np.ndarray] = {}
    for row in ssn.state.jobs.present().tolist():
        record = ssn.state.jobs.record(row)
        if record.queue != queue:
            continue
        total = sums.setdefault(record.key.namespace, np.zeros(len(ssn.state.resources.names)))
        for task in ssn.state.rows_of_job(row).tolist():
            if TaskStatus(ssn.state.tasks.status[task]) in COUNTED:
                total += ssn.state.task_of(int(ssn.state.tasks.shape[task])).request
    there = ssn.state.total > 0
    return {name: float((total[there] / ssn.state.total[there]).max()) for name, total in sums.items()}


def test_shares_of_namespaces_equal_a_count_whatever_is_placed_and_taken_back() -> None:
    seen = 0
    for number in range(25):
        plugin = Drf()
        plugin.asked = frozenset({NamespaceOrder})
        ssn = a_session(in_namespaces(number), plugin)
        for queue in ssn.state.queues:
            checkpoint = ssn.state.journal.checkpoint()
            before = held(ssn, queue)
            evict_something(ssn, Random(number))
            place_something(ssn, Random(number))
            for expected in (held(ssn, queue), before):
                names = sorted(expected)
                assert plugin.namespace_order(ssn.state.queues[queue], names).tolist() == [
                    expected[name] for name in names
                ]
                seen += len(names) > 1
                ssn.state.journal.rollback(checkpoint, ssn.state.nodes.block)
    assert seen
