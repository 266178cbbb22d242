"""Operation enqueueable: may each job be enqueued? Overcommit's rows first report each job as enqueued."""

from typing import Final

from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case


def _ask(case: Case, *, reported: bool) -> Outcome:
    ssn = open_session(case)
    answers = {}
    for row in sorted(ssn.state.jobs.present().tolist(), key=lambda row: ssn.state.jobs.record(row).key):
        job = ssn.state.job(row)
        if reported:
            ssn.hooks.job_enqueued(job)
        answers[str(job.key)] = ssn.hooks.job_enqueueable(job)
    return {"enqueueable": answers}


ASKED: Final = Operation(lambda case: _ask(case, reported=False), {"enqueueable": same}, INPUTS, needs_session=True)
"""The plugin is asked about each job in its current state."""

REPORTED: Final = Operation(lambda case: _ask(case, reported=True), {"enqueueable": same}, INPUTS, needs_session=True)
"""Each job is first reported as enqueued, so that it counts twice; then the plugin is asked."""
