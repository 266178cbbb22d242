"""Field paths of stages."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.apiserver.kubelet.fields import read_path

OBJECT = {
    "metadata": {"annotations": {"a.b/c": "x"}},
    "spec": {"containers": [{"name": "one"}, {"name": "two"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "count": 0},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status.count", 0),
        ('metadata.annotations["a.b/c"]', "x"),
        ("spec.containers[1].name", "two"),
        ("status.conditions[type=Ready].status", "True"),
        ("status.conditions[type=Other].status", None),
        ("spec.containers[7].name", None),
        ("status.count.deeper", None),
        ("status.conditions.type", None),
        ("none.at.all", None),
    ],
)
def test_a_path_leads_to_a_value_or_to_none(path: str, value: Any) -> None:
    assert read_path(OBJECT, path) == value


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[b", "[=x]", "a b"])
def test_a_path_that_cannot_be_read_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        read_path(OBJECT, path)
