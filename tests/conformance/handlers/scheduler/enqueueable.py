"""Operation enqueueable: each job is reported as enqueued, so that it counts again, and then asked for."""

from typing import Final

from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case


def _run(case: Case) -> Outcome:
    ssn = open_session(case)
    answers = {}
    for row in sorted(ssn.jobs.present().tolist(), key=lambda row: ssn.jobs.record(row).key):
        job = ssn.job(row)
        ssn.job_enqueued(job)
        answers[str(job.key)] = ssn.job_enqueueable(job)
    return {"enqueueable": answers}


OPERATION: Final = Operation(_run, {"enqueueable": same}, INPUTS, needs_session=True)
