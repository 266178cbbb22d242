"""Which fields objects have."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.apiserver.protobuf.messages import drop_unknown

POD = {"containers": [{"name": "a", "imag": "b"}], "kind": "Pod", "volumes": [{"name": "v", "emptyDir": {"size": 1}}]}


@pytest.mark.parametrize(
    ("message", "obj", "dropped"),
    [
        pytest.param(
            "core/v1.Pod",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "label": {}}, "spec": POD, "state": {}},
            ["metadata.label", "spec.containers[0].imag", "spec.kind", "spec.volumes[0].emptyDir.size", "state"],
            id="at-every-depth",
        ),
        pytest.param(
            "apps/v1.StatefulSet",
            {"spec": {"volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}}]}},
            [],
            id="what-has-metadata-may-say-what-it-is",
        ),
        pytest.param(
            "core/v1.Secret", {"data": {"anything": "eA=="}, "stringData": {"x": "y"}}, [], id="keys-of-maps-are-free"
        ),
        pytest.param("core/v1.Pod", {"spec": ["no object"], "status": None}, [], id="wrong-types-are-asked-elsewhere"),
        pytest.param("example.com/v1.Widget", {"anything": 1}, [], id="of-a-kind-that-nobody-knows"),
    ],
)
def test_fields_that_an_object_does_not_have_are_dropped(message: str, obj: dict[str, Any], dropped: list[str]) -> None:
    assert drop_unknown(obj, message) == dropped
    assert drop_unknown(obj, message) == []
