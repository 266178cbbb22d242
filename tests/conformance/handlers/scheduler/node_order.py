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
    for row, record in enumerate(ssn.tasks.records):
        if record is not None:
            task = ssn.task_of(int(ssn.tasks.shape[row]))
            total = combine.total(ssn.node_orders, len(ssn.nodes), task, ssn.nodes)
            scores[str(record.ref)] = dict(zip(ssn.nodes.names, total.tolist(), strict=True))
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
