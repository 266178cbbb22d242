"""The control plane that the other end-to-end tests stand on."""

from __future__ import annotations

from tests.controlplane.fixtures import MakeNodes
from tests.e2e.control_plane import ControlPlane


def test_a_new_node_becomes_ready_and_loses_its_taint(control_plane: ControlPlane, make_nodes: MakeNodes) -> None:
    (name,) = make_nodes(1, cpu=8, extended={"nvidia.com/gpu": 4})

    node = control_plane.request("GET", f"/api/v1/nodes/{name}")

    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert "taints" not in node["spec"]
