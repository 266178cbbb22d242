"""Operations evictable and preemptable: which of the candidates do plugins let go?"""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome, same_set
from tests.conformance.row_files import Case
from volcano_py.framework.evictables import Evictables
from volcano_py.framework.extension import Claim, Purpose
from volcano_py.framework.session import Session
from volcano_py.model.objects import JobKey
from volcano_py.snapshot.columns import Rows

_CLAIMANT: Final = "claimant-of-the-row"  # its namespace and priority class


def _evictable(case: Case) -> Outcome:
    """Ask for a claimant that is a job as a whole, once for each action for gangs."""
    ssn = open_session(_with_claimant(case))
    job = _job(ssn, JobKey(_CLAIMANT, case.input["claimant"]["name"]))
    candidates = _candidates(ssn, case)
    purposes = {"gangReclaim": Purpose.RECLAIM, "gangPreempt": Purpose.PREEMPT}
    return {
        key: _names(ssn, candidates, ssn.victims.allowed_for_gang(Claim(purpose, job, _queue(ssn, job)), candidates))
        for key, purpose in purposes.items()
    }


def _preemptable(case: Case) -> Outcome:
    """Ask for one task, the one named as preemptor; where none is named, the first that is no candidate."""
    ssn = open_session(case)
    candidates = _candidates(ssn, case)
    row = _row_of(ssn, case.input["preemptor"]) if "preemptor" in case.input else _other(ssn, candidates.rows)
    job = ssn.job(int(ssn.tasks.job[row]))
    task = ssn.task_of(int(ssn.tasks.shape[row]))
    claim = Claim(Purpose.PREEMPT, job, _queue(ssn, job), task, int(ssn.tasks.priority[row]))
    return {"victims": _names(ssn, candidates, ssn.victims.allowed(claim, candidates))}


def _with_claimant(case: Case) -> Case:
    """Return the row with a PodGroup for its claimant, in the queue of the first candidate."""
    claimant = case.input["claimant"]
    first = next(pod for pod in case.input["pods"] if _name(pod) == case.input["candidates"][0])
    group = first["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
    queue = next(
        entry["spec"]["queue"]
        for entry in case.input["podGroups"]
        if (entry["metadata"]["namespace"], entry["metadata"]["name"]) == (first["metadata"]["namespace"], group)
    )
    added = {
        "podGroups": {
            "metadata": {"name": claimant["name"], "namespace": _CLAIMANT},
            "spec": {"queue": queue, "minMember": 1, "priorityClassName": _CLAIMANT},
            "status": {"phase": "Inqueue"},
        },
        "priorityClasses": {"metadata": {"name": _CLAIMANT}, "value": claimant["priority"]},
    }
    objects = {key: [*case.input.get(key, ()), entry] for key, entry in added.items()}
    return replace(case, input={**case.input, **objects})


def _candidates(ssn: Session, case: Case) -> Evictables:
    rows = np.array([_row_of(ssn, name) for name in case.input["candidates"]], dtype=np.intp)
    return Evictables(ssn, rows, np.zeros(len(rows), dtype=np.intp))


def _row_of(ssn: Session, name: str) -> int:
    return next(row for row, record in enumerate(ssn.tasks.records) if record is not None and str(record.ref) == name)


def _other(ssn: Session, candidates: Rows) -> int:
    return next(row for row, record in enumerate(ssn.tasks.records) if record is not None and row not in candidates)


def _names(ssn: Session, candidates: Evictables, allowed: Any) -> list[str]:
    return [str(ssn.tasks.record(row).ref) for row in candidates.rows[allowed].tolist()]


def _name(pod: dict[str, Any]) -> str:
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def _job(ssn: Session, key: JobKey) -> Any:
    return ssn.job(next(row for row in ssn.jobs.present().tolist() if ssn.jobs.record(row).key == key))


def _queue(ssn: Session, job: Any) -> Any:
    return ssn.queues[job.record.queue]


EVICTABLE: Final = Operation(
    _evictable,
    {"gangReclaim": same_set, "gangPreempt": same_set},
    INPUTS | {"claimant", "candidates"},
    needs_session=True,
)
PREEMPTABLE: Final = Operation(
    _preemptable, {"victims": same_set}, INPUTS | {"preemptor", "candidates"}, needs_session=True
)
