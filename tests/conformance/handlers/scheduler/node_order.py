"""Operation nodeOrder: the score of each pod on each node, running pods and pods with a node included.

The operation compares only scores of a node by itself, not scores that are normalised over a group of nodes.
"""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.conformance.handlers.scheduler.predicate import listed, refusals
from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome
from tests.conformance.row_files import Case
from volcano_py.framework.contract import combine


def _run(case: Case) -> Outcome:
    ssn = open_session(case)
    scores = {}
    for row, record in enumerate(ssn.state.tasks.records):
        if record is not None:
            task = ssn.state.task_of(int(ssn.state.tasks.shape[row]))
            total = combine.total(ssn.hooks.nodes.node_orders, len(ssn.state.nodes), task, ssn.state.nodes)
            scores[str(record.ref)] = dict(zip(ssn.state.nodes.names, total.tolist(), strict=True))
    return {"nodeScores": scores, "tolerance": None, "predicateCode": refusals(ssn)[0]}


def close(expected: Mapping[str, Mapping[str, float]], actual: Any, expect: Mapping[str, Any]) -> None:
    for pod, scores in expected.items():
        assert {node: actual[pod][node] for node in scores} == pytest.approx(
            scores, abs=expect.get("tolerance", 0), rel=0
        )


def is_tolerance(expected: float, _: Any, __: Mapping[str, Any]) -> None:
    assert expected >= 0


OPERATION: Final = Operation(
    _run, {"nodeScores": close, "tolerance": is_tolerance, "predicateCode": listed}, INPUTS, needs_session=True
)
