"""Area controllers/jobflow: the phase of a flow."""

from typing import Final

import msgspec

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api.flow import JobFlowStatus
from volcano_py.controllers.jobflow.standing import next_phase


def _sync(case: Case) -> Outcome:
    status = msgspec.convert(case.input["status"], JobFlowStatus)
    phase = next_phase(
        status.state.phase,
        steps=case.input["flows"],
        completed=len(status.completed_jobs),
        running=bool(status.running_jobs),
        ended_badly=bool(status.failed_jobs or status.terminated_jobs),
    )
    return {"phase": phase}


OPERATIONS: Final = {"sync": Operation(_sync, {"phase": same}, frozenset({"flows", "status"}))}
