"""Operation predicate: what the configured predicates say of each pod on each node, and why."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.framework import combine
from volcano_py.framework.session import Session

Answers = dict[str, dict[str, str]]
"""Pod -> node -> answer."""


def refusals(ssn: Session) -> tuple[Answers, list[str]]:
    """Return the code of the first refusal of each pod on each node, and the texts of all refusals."""
    codes: Answers = {}
    texts: list[str] = []
    for row, record in enumerate(ssn.tasks.records):
        if record is None:
            continue
        task = ssn.task_of(int(ssn.tasks.shape[row]))
        dynamic = combine.first_refusals(ssn.predicates, ssn.reason_offsets, len(ssn.nodes), task, ssn.nodes)
        static = ssn.static_verdicts(task)
        verdicts = np.where(static != 0, static, dynamic).tolist()
        reasons = [ssn.reason(int(verdict)) if verdict else None for verdict in verdicts]
        codes[str(record.ref)] = dict(zip(ssn.nodes.names, (_code(reason) for reason in reasons), strict=True))
        texts += [reason.text for reason in reasons if reason is not None]
    return codes, texts


def _code(reason: Any) -> str:
    if reason is None:
        return "Success"
    return "Unschedulable" if reason.resolvable else "UnschedulableAndUnresolvable"


def listed(expected: Mapping[str, Any], actual: Mapping[str, Any], _: Any) -> None:
    """Compare the pods that are listed."""
    assert {pod: actual[pod] for pod in expected} == expected


def _run(case: Case) -> Outcome:
    codes, texts = refusals(open_session(case))
    return {"predicateCode": codes, "reason": next(iter(texts), ""), "message": next(iter(texts), "")}


OPERATION: Final = Operation(
    _run, {"predicateCode": listed, "reason": same, "message": same}, INPUTS, needs_session=True
)
