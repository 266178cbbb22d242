"""Area controllers/queue_state_machine: the state of a queue after an action."""

from typing import Any, Final

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.controllers.queue import states

_INPUTS: Final = frozenset({"state", "queue", "podGroups"})


def _open(_: Case) -> Outcome:
    return {"state": states.open_()}


def _close(case: Case) -> Outcome:
    return {"state": states.close(case.input["state"], bool(case.input.get("podGroups")))}


def _sync(case: Case) -> Outcome:
    queue: dict[str, Any] = case.input["queue"]
    stored = queue.get("status", {}).get("state", "")
    return {"state": states.sync(case.input["state"], stored, bool(case.input.get("podGroups")))}


OPERATIONS: Final = {
    "open": Operation(_open, {"state": same}, _INPUTS),
    "close": Operation(_close, {"state": same}, _INPUTS),
    "sync": Operation(_sync, {"state": same}, _INPUTS),
}
