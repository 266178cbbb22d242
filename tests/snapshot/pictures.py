"""Snapshots as plain dictionaries keyed by names, so that two stores with different histories can be compared."""

from typing import Any

import numpy as np

from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import Snapshot


def picture(snapshot: Snapshot) -> dict[str, Any]:
    """Return the content of a snapshot; names replace rows, codes and ids."""
    return {
        "nodes": _nodes(snapshot),
        "tasks": _tasks(snapshot),
        "jobs": _jobs(snapshot),
        "queues": dict(snapshot.queues),
        "shapes": _shapes(snapshot),
        "facts": snapshot.facts,
        "nominated": _nominated(snapshot),
    }


def _nominated(snapshot: Snapshot) -> list[tuple[str, str]]:
    names = snapshot.nodes.statics.names
    return [
        (snapshot.tasks.record(task).uid, names[node])
        for task, node in zip(snapshot.nominated.tasks.tolist(), snapshot.nominated.nodes.tolist(), strict=True)
    ]


def check_free_rows(snapshot: Snapshot) -> None:
    """Assert that unused rows are empty."""
    tasks, jobs = snapshot.tasks, snapshot.jobs
    for row, record in enumerate(tasks.records):
        if record is None:
            assert (tasks.status[row], tasks.node[row], tasks.job[row]) == (TaskStatus.UNKNOWN, -1, -1)
            assert tasks.role[row] == -1
    used = set(tasks.job.tolist())
    for row, job in enumerate(jobs.records):
        if job is None and row not in used:
            assert not jobs.block[:, row].any()
            assert not jobs.min_resources[:, row].any()
            assert not jobs.has_min_resources[row]
            assert (jobs.min_available[row], jobs.priority[row], jobs.creation[row], jobs.phase[row]) == (0, 0, 0, 0)


def _amounts(snapshot: Snapshot, vector: Any) -> dict[str, float]:
    """Return a resource vector by name, without zeros: a resource may be known to only one of two stores."""
    return {name: float(amount) for name, amount in zip(snapshot.resources.names, vector, strict=True) if amount}


def _nodes(snapshot: Snapshot) -> dict[str, Any]:
    nodes, statics = snapshot.nodes, snapshot.nodes.statics
    assert list(statics.names) == sorted(statics.names)
    found = {}
    for row, name in enumerate(statics.names):
        labels = {key: column.values[column.codes[row]] for key, column in statics.labels.items() if column.codes[row]}
        found[name] = {
            "record": statics.records[row],
            "labels": labels,
            "taints": statics.taint_sets[statics.taint_ids[row]],
            "unschedulable": bool(statics.unschedulable[row]),
            "closed": bool(statics.closed[row]),
            "nonzero": nodes.nonzero[:, row].tolist(),
            "ports": nodes.ports.of(row),
            **{
                section: _amounts(snapshot, getattr(nodes, section)[:, row])
                for section in ("allocatable", "idle", "used", "releasing", "pipelined", "requested")
            },
        }
    return found


def _tasks(snapshot: Snapshot) -> dict[str, Any]:
    tasks, names = snapshot.tasks, snapshot.nodes.statics.names
    found = {}
    for row, record in enumerate(tasks.records):
        if record is None:
            continue
        shape = int(tasks.shape[row])
        found[record.uid] = {
            "record": record,
            "status": TaskStatus(int(tasks.status[row])),
            "node": names[tasks.node[row]] if tasks.node[row] >= 0 else None,
            "has_job": bool(tasks.job[row] >= 0),
            "shape": snapshot.shapes[shape],
            "request": _amounts(snapshot, snapshot.requests[:, shape]),
            "nonzero": snapshot.nonzero[:, shape].tolist(),
            "priority": int(tasks.priority[row]),
            "creation": float(tasks.creation[row]),
            "suffix": int(tasks.suffix[row]),
            "role": tasks.role_names[tasks.role[row]],
        }
    return found


def _jobs(snapshot: Snapshot) -> dict[JobKey, Any]:
    jobs, tasks = snapshot.jobs, snapshot.tasks
    keys = {row: record.key for row, record in enumerate(jobs.records) if record is not None}
    for row, record in enumerate(tasks.records):
        if record is not None and record.key is not None:
            job = int(tasks.job[row])
            assert keys.setdefault(job, record.key) == record.key
    return {
        key: {
            "record": jobs.records[row],
            "counts": jobs.counts[:, row].tolist(),
            "held": float(jobs.held[row]),
            "valid": float(jobs.valid[row]),
            "rule": _rule(snapshot, row) if jobs.records[row] is not None else None,
            **{
                section: _amounts(snapshot, getattr(jobs, section)[:, row])
                for section in ("allocated", "pending", "total", "promised")
            },
        }
        for row, key in keys.items()
    }


def _rule(snapshot: Snapshot, row: int) -> tuple[Any, ...]:
    """Return the columns of a job that only its PodGroup fills."""
    jobs = snapshot.jobs
    return (
        int(jobs.min_available[row]),
        int(jobs.priority[row]),
        float(jobs.creation[row]),
        int(jobs.phase[row]),
        jobs.rules.queue_names[jobs.rules.queue[row]],
        _amounts(snapshot, jobs.min_resources[:, row]) if jobs.has_min_resources[row] else None,
        _role_minimums(snapshot).get(row, {}),
    )


def _role_minimums(snapshot: Snapshot) -> dict[int, dict[str, int]]:
    minimums, names = snapshot.jobs.rules.role_minimums, snapshot.tasks.role_names
    found: dict[int, dict[str, int]] = {}
    for job, role, least in zip(minimums.jobs.tolist(), minimums.roles.tolist(), minimums.tasks.tolist(), strict=True):
        found.setdefault(job, {})[names[role]] = least
    return found


def _shapes(snapshot: Snapshot) -> list[str]:
    used = set(np.unique(snapshot.tasks.shape[[record is not None for record in snapshot.tasks.records]]).tolist())
    live = {index for index, shape in enumerate(snapshot.shapes) if shape is not None}
    assert used == live, "every live shape has a task, and every task a live shape"
    return sorted(repr(shape) for shape in snapshot.shapes if shape is not None)
