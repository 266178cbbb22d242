"""Area controllers/garbage_collector: when a finished job is deleted."""

from datetime import datetime
from typing import Any, Final

import msgspec

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import NOW, Case
from volcano_py.api.batch import Job
from volcano_py.controllers.garbage_collector import decision


def _job(case: Case) -> Job:
    return msgspec.convert(case.input["job"], Job)


def _expired(case: Case) -> Outcome:
    return {"result": bool(decision.plan(_job(case), NOW).steps)}


def _needs_cleanup(case: Case) -> Outcome:
    return {"result": decision.needs_cleanup(_job(case))}


def _finished(case: Case) -> Outcome:
    return {"result": decision.is_finished(_job(case))}


def _time_left(case: Case) -> Outcome:
    try:
        return {"seconds": decision.time_left(_job(case), datetime.fromisoformat(case.input["now"])), "error": None}
    except decision.NotFinishedError as error:
        return {"seconds": None, "error": str(error)}


def _same_without_error(expected: Any, actual: Any, expect: Any) -> None:
    if expect.get("error") is None:
        assert actual == expected


_JOB: Final = frozenset({"job"})
OPERATIONS: Final = {
    "expired": Operation(_expired, {"result": same}, _JOB),
    "needsCleanup": Operation(_needs_cleanup, {"result": same}, _JOB),
    "finished": Operation(_finished, {"result": same}, _JOB),
    "timeLeft": Operation(_time_left, {"seconds": _same_without_error, "error": same}, _JOB | {"now"}),
}
