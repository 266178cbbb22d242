"""Whatever is placed and taken back: afterwards every plugin answers as before, to the last bit."""

from itertools import permutations
from random import Random

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.busy import busy_world
from tests.reference.furnished import measured, with_node_groups, with_racks, with_topology, with_usage
from volcano_py.framework.contract import extension_points
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.session import Session
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins import PLUGINS
from volcano_py.snapshot.columns import NodeColumns

WORLDS = {
    "network-topology-aware": with_racks,
    "nodegroup": with_node_groups,
    "task-topology": with_topology,
    "usage": lambda number: measured(*with_usage(number)),
}
"""Clusters for plugins to which a plain one means nothing."""


VOTES = {
    extension_points.Preemptable: "preemptable",
    extension_points.Reclaimable: "reclaimable",
    extension_points.VictimFilter: "protected",
}


def answers(plugin: Plugin, ssn: Session) -> list[object]:
    """Return everything a plugin says of this session."""
    jobs = [
        ssn.state.job(row)
        for row in ssn.state.jobs.present().tolist()
        if ssn.state.jobs.record(row).queue in ssn.state.queues
    ]
    tasks = [ssn.state.task_of(shape) for shape, found in enumerate(ssn.state.classes.shapes) if found is not None]
    queues = list(ssn.state.queues.values())
    said: list[object] = []
    if isinstance(plugin, extension_points.JobOrder):
        said.append(plugin.job_order(ssn.state.jobs).tobytes())
    if isinstance(plugin, extension_points.TaskOrder):
        said.append(plugin.task_order(ssn.state.tasks).tobytes())
    if isinstance(plugin, extension_points.QueueOrder) and (plugin.name != "drf" or plugin.hierarchy):
        said += [plugin.queue_order(left, right) for left, right in permutations(queues, 2)]
    if isinstance(plugin, extension_points.Overused):
        said += [plugin.overused(queue) for queue in queues]
    if isinstance(plugin, extension_points.Allocatable):
        said += [plugin.allocatable(queue, task, 9) for queue in queues for task in tasks]
    if isinstance(plugin, extension_points.JobReady):
        said += [plugin.missing(job) for job in jobs]
    if isinstance(plugin, extension_points.JobPipelined):
        said += [plugin.job_pipelined(job) for job in jobs]
    if isinstance(plugin, extension_points.JobEnqueueable):
        said += [plugin.job_enqueueable(job) for job in jobs]
    return said + _about_victims(plugin, ssn) + _about_nodes(plugin, tasks, ssn.state.nodes)


def _about_victims(plugin: Plugin, ssn: Session) -> list[object]:
    said: list[object] = []
    candidates = ssn.eviction.all.only(ssn.eviction.all.queues >= 0)
    # A claim for every job that waits, with its first task.
    for row in ssn.state.jobs.present().tolist():
        tasks, queue = ssn.hooks.pending.of(row), ssn.state.queues.get(ssn.state.jobs.record(row).queue)
        if not len(tasks) or queue is None:
            continue
        task = ssn.state.task_of(int(ssn.state.tasks.shape[tasks[0]]))
        preemptor = extension_points.Preemptor(
            extension_points.Purpose.RECLAIM, ssn.state.job(row), queue, task, int(ssn.state.tasks.priority[tasks[0]])
        )
        for point, method in VOTES.items():
            asked = isinstance(plugin, point) and (point not in (plugin.hierarchical or ()) or plugin.hierarchy)
            answer = getattr(plugin, method)(preemptor, candidates) if asked else None
            said.append(None if answer is None else answer.tobytes())
    return said


def _about_nodes(plugin: Plugin, tasks: list[object], nodes: NodeColumns) -> list[object]:
    said: list[object] = []
    for task in tasks:
        if isinstance(plugin, extension_points.Predicate):
            said += [plugin.predicate(task, nodes).tobytes(), plugin.refusals(task, nodes).tobytes()]  # type: ignore[arg-type]
        if isinstance(plugin, extension_points.NodeOrder):
            said.append(plugin.node_order(task, nodes).tobytes())  # type: ignore[arg-type]
    return said


def place_something(ssn: Session, random: Random) -> int:
    """Put pending tasks somewhere, a few at a time, and take some of it back on the way; return how many were put."""
    waiting: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero((ssn.state.tasks.status == TaskStatus.PENDING) & (ssn.state.tasks.job >= 0)).tolist():
        waiting.setdefault((int(ssn.state.tasks.job[row]), int(ssn.state.tasks.shape[row])), []).append(row)
    done = 0
    for (job, shape), rows in waiting.items():
        statement = ssn.statement()
        count = random.randint(1, len(rows))
        nodes = np.array([random.randrange(len(ssn.state.nodes)) for _ in range(count)])
        put = random.choice((statement.allocate, statement.pipeline))
        put(job, shape, np.array(rows[:count]), nodes)
        done += count
        if random.random() < 0.3:
            statement.discard()
    return done


def evict_something(ssn: Session, random: Random) -> int:
    """Send some of those away that stand somewhere, and let some of them stay after all; return how many go."""
    standing = ssn.eviction.all.rows.tolist()
    statement = ssn.statement()
    chosen = sorted(random.sample(standing, random.randint(0, len(standing))))
    if chosen:
        statement.evict(np.array(chosen))
    for row in [row for row in chosen if random.random() < 0.3]:
        statement.put_back(row)
    return len(statement.evicted)


STILL = {"cdp", "conformance", "overcommit", "pdb", "priority", "rescheduling", "resourcequota", "sla"}
"""Plugins whose answers do not depend on placements."""


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_after_random_placements_and_their_undo_a_plugin_answers_as_before(name: str) -> None:
    moved = 0
    for number in range(25):
        plugin = PLUGINS[name](PLUGINS[name].parse({}, lambda text: None))
        ssn = a_session(WORLDS.get(name, busy_world)(number), plugin)
        before, checkpoint = answers(plugin, ssn), ssn.state.journal.checkpoint()

        if evict_something(ssn, Random(number)) + place_something(ssn, Random(number)):
            moved += answers(plugin, ssn) != before
        ssn.state.journal.rollback(checkpoint, ssn.state.nodes.block)

        assert answers(plugin, ssn) == before, f"world {number}"
    assert moved or name in STILL, "nothing was put to the test"
