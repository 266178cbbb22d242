"""Taints of nodes as their conditions demand."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.apiserver.node_lifecycle import wanted_taints

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def _node(ready: str | None, **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "DiskPressure", "status": "False"}]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready})
    return {"spec": spec, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("node", "taints"),
    [
        pytest.param(_node(None), [(NOT_READY, "NoSchedule")], id="never-reported"),
        pytest.param(_node("True"), [], id="ready"),
        pytest.param(_node("False"), [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")], id="not-ready"),
        pytest.param(_node("Unknown"), [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")], id="unknown"),
        pytest.param(
            _node("True", unschedulable=True), [("node.kubernetes.io/unschedulable", "NoSchedule")], id="cordoned"
        ),
        pytest.param(
            _node("True", taints=[{"key": NOT_READY, "effect": "NoSchedule"}, {"key": "own", "effect": "NoExecute"}]),
            [("own", "NoExecute")],
            id="taints-of-others-stay",
        ),
    ],
)
def test_taints_follow_the_state(node: dict[str, Any], taints: list[tuple[str, str]]) -> None:
    assert [(taint["key"], taint["effect"]) for taint in wanted_taints(node)] == taints


def test_an_existing_taint_is_kept_unchanged() -> None:
    taint = {"key": NOT_READY, "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z"}
    assert wanted_taints(_node(None, taints=[taint])) == [taint]
