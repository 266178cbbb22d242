"""Operation predicate: the verdict of the configured predicates on each pod and node, and the reason."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome
from tests.conformance.row_files import Case
from volcano_py.framework.contract import combine
from volcano_py.framework.session import Session
from volcano_py.model.node_refusals import NodeAnswer, NodeRefusal

Answers = dict[str, dict[str, str]]
"""Pod -> node -> answer."""

Texts = dict[str, dict[str, tuple[str, ...]]]
"""Pod -> node -> the reason of a refusal, and the whole message."""


def refusals(ssn: Session) -> tuple[Answers, Texts]:
    """Return the code of the first refusal of each pod on each node, and its texts."""
    codes: Answers = {}
    texts: Texts = {}
    for row, record in enumerate(ssn.state.tasks.records):
        if record is None:
            continue
        task = ssn.state.task_of(int(ssn.state.tasks.shape[row]))
        dynamic = combine.first_refusals(
            ssn.hooks.nodes.predicates, ssn.hooks.nodes.reason_offsets, len(ssn.state.nodes), task, ssn.state.nodes
        )
        static = ssn.hooks.nodes.static_verdicts(task)
        verdicts = np.where(static != 0, static, dynamic).tolist()
        answers = {
            node: ssn.hooks.nodes.reason(int(verdict)) if verdict else None
            for node, verdict in zip(ssn.state.nodes.names, verdicts, strict=True)
        }
        codes[str(record.ref)] = {node: _code(reason) for node, reason in answers.items()}
        texts[str(record.ref)] = {
            node: (reason.text, NodeRefusal(*record.ref[:2], node, (NodeAnswer(reason.text),)).message)
            for node, reason in answers.items()
            if reason is not None
        }
    return codes, texts


def _code(reason: Any) -> str:
    if reason is None:
        return "Success"
    return "Unschedulable" if reason.resolvable else "UnschedulableAndUnresolvable"


def listed(expected: Mapping[str, Any], actual: Mapping[str, Any], _: Any) -> None:
    """Compare the pods and nodes that are listed."""
    assert {pod: {node: actual[pod][node] for node in nodes} for pod, nodes in expected.items()} == expected


def told(expected: Any, actual: Any, _: Any) -> None:
    """Assert the texts of refusals: those listed by pod and node, or plain texts that any refusal may have."""
    if isinstance(expected, Mapping):
        for key, wanted in expected.items():
            told(wanted, actual.get(key, {}), _)
        return
    found = set(_texts(actual)) or {""}
    for wanted in [expected] if isinstance(expected, str) else expected:
        assert wanted in found


def _texts(answers: Any) -> Iterator[str]:
    for answer in answers.values() if isinstance(answers, Mapping) else answers:
        if isinstance(answer, str):
            yield answer
        else:
            yield from _texts(answer)


def _run(case: Case) -> Outcome:
    codes, texts = refusals(open_session(case))
    return {"predicateCode": codes, "reason": texts, "message": texts}


OPERATION: Final = Operation(
    _run, {"predicateCode": listed, "reason": told, "message": told}, INPUTS, needs_session=True
)
