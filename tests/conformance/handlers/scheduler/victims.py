"""Operations evictable and preemptable: which victim candidates do the plugins permit?

A candidate, or a preemptor, is the ``namespace/name`` of a pod of the row, or a whole pod.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome, same_set
from tests.conformance.row_files import Case
from volcano_py.framework.contract.extension_points import Preemptor, Purpose
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.session import Session
from volcano_py.model.objects import JobKey

_PREEMPTOR: Final = "preemptor-of-the-row"  # its namespace and priority class


def _evictable(case: Case) -> Outcome:
    """Ask with a whole job as the preemptor, once for each gang action."""
    case, preemptor = _with_pods(case), case.input["claimant"]
    ssn = open_session(_with_preemptor(case, preemptor["name"], preemptor["priority"]))
    job = _job(ssn, JobKey(_PREEMPTOR, preemptor["name"]))
    candidates = _candidates(ssn, case)
    purposes = {"gangReclaim": Purpose.RECLAIM, "gangPreempt": Purpose.PREEMPT}
    return {
        key: _names(
            ssn, candidates, ssn.eviction.allowed_for_gang(Preemptor(purpose, job, _queue(ssn, job)), candidates)
        )
        for key, purpose in purposes.items()
    }


def _preemptable(case: Case) -> Outcome:
    """Ask for one task: the preemptor, else the first task that is no candidate, else a task of another job."""
    case = _with_pods(case)
    groups = {_name(group) for group in case.input.get("podGroups", ())}
    others = [_name(pod) for pod in _pods(case) if _group_of(pod) in groups and not _is_candidate(case, _name(pod))]
    wanted = case.input.get("preemptor", others[0] if others else "")
    if wanted not in others:
        case, wanted = _with_preemptor(case, _PREEMPTOR, 0), f"{_PREEMPTOR}/{_PREEMPTOR}"
    ssn = open_session(case)
    candidates = _candidates(ssn, case)
    row = _row_of(ssn, wanted)
    job = ssn.state.job(int(ssn.state.tasks.job[row]))
    task = ssn.state.task_of(int(ssn.state.tasks.shape[row]))
    preemptor = Preemptor(Purpose.PREEMPT, job, _queue(ssn, job), task, int(ssn.state.tasks.priority[row]))
    return {"victims": _names(ssn, candidates, ssn.eviction.allowed(preemptor, candidates))}


def _with_pods(case: Case) -> Case:
    """Return the row with its candidates and preemptor by name, all of them among its pods."""
    pods = {_name(pod): pod for pod in case.input.get("pods", ())}
    named = dict(case.input)
    for key in named.keys() & {"candidates", "preemptor"}:
        written = named[key] if isinstance(named[key], list) else [named[key]]
        pods = {_name(pod): pod for pod in written if isinstance(pod, dict)} | pods
        names = [_name(pod) if isinstance(pod, dict) else pod for pod in written]
        named[key] = names if isinstance(named[key], list) else names[0]
    return replace(case, input={**named, "pods": list(pods.values())})


def _with_preemptor(case: Case, name: str, priority: int) -> Case:
    """Return the row with a PodGroup and a pod for a preemptor, in the queue of the first candidate that has one."""
    queues = {_name(group): group["spec"]["queue"] for group in case.input.get("podGroups", ())}
    groups = (_group_of(pod) for pod in _pods(case) if _is_candidate(case, _name(pod)))
    queue = next((queues[group] for group in groups if group in queues), _PREEMPTOR)
    group = {"scheduling.k8s.io/group-name": name}
    added = {
        "podGroups": {
            "metadata": {"name": name, "namespace": _PREEMPTOR},
            "spec": {"queue": queue, "minMember": 1, "priorityClassName": _PREEMPTOR},
            "status": {"phase": "Inqueue"},
        },
        "pods": {
            "metadata": {"name": _PREEMPTOR, "namespace": _PREEMPTOR, "annotations": group},
            "spec": {"priority": priority, "containers": [{}]},
            "status": {"phase": "Pending"},
        },
        "priorityClasses": {"metadata": {"name": _PREEMPTOR}, "value": priority},
        "queues": {"metadata": {"name": _PREEMPTOR}, "spec": {"weight": 1}, "status": {"state": "Open"}},
    }
    objects = {key: [*case.input.get(key, ()), entry] for key, entry in added.items()}
    return replace(case, input={**case.input, **objects})


def _pods(case: Case) -> list[dict[str, Any]]:
    return list(case.input.get("pods", ()))


def _is_candidate(case: Case, pod: str) -> bool:
    return pod in case.input["candidates"]


def _group_of(pod: dict[str, Any]) -> str:
    meta = pod["metadata"]
    return f"{meta.get('namespace', '')}/{meta.get('annotations', {}).get('scheduling.k8s.io/group-name', '')}"


def _candidates(ssn: Session, case: Case) -> VictimCandidates:
    rows = np.array([_row_of(ssn, name) for name in case.input["candidates"]], dtype=np.intp)
    return VictimCandidates(ssn.state, rows, np.zeros(len(rows), dtype=np.intp))


def _row_of(ssn: Session, name: str) -> int:
    return next(
        row for row, record in enumerate(ssn.state.tasks.records) if record is not None and str(record.ref) == name
    )


def _names(ssn: Session, candidates: VictimCandidates, allowed: Any) -> list[str]:
    return [str(ssn.state.tasks.record(row).ref) for row in candidates.rows[allowed].tolist()]


def _name(written: dict[str, Any]) -> str:
    return f"{written['metadata'].get('namespace', '')}/{written['metadata']['name']}"


def _job(ssn: Session, key: JobKey) -> Any:
    return ssn.state.job(
        next(row for row in ssn.state.jobs.present().tolist() if ssn.state.jobs.record(row).key == key)
    )


def _queue(ssn: Session, job: Any) -> Any:
    return ssn.state.queues[job.record.queue]


EVICTABLE: Final = Operation(
    _evictable,
    {"gangReclaim": same_set, "gangPreempt": same_set},
    INPUTS | {"claimant", "candidates"},
    needs_session=True,
)
PREEMPTABLE: Final = Operation(
    _preemptable, {"victims": same_set}, INPUTS | {"preemptor", "candidates"}, needs_session=True
)
