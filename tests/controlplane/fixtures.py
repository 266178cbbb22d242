"""Fixtures on a real control plane, for tests/e2e and every other suite that runs against one.

A suite takes them with `from tests.controlplane.fixtures import control_plane, namespace  # noqa: F401` in its
conftest. However many suites do that, one run starts one control plane.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.install import Installed, install, install_beside
from tests.controlplane.namespaces import create_namespace, discard_namespace
from tests.controlplane.nodes import create_nodes, delete_nodes, node_object, wait_nodes_ready
from tests.e2e.control_plane import ControlPlane

MakeNodes = Callable[..., list[str]]


class _Shared:
    """The control plane of this run: started by the first suite that needs it, stopped after the last."""

    plane: ControlPlane | None = None
    users = 0

    @classmethod
    def take(cls) -> ControlPlane:
        if cls.plane is None:
            theirs = os.environ.get("KUBECONFIG")
            cls.plane = ControlPlane.borrow(Path(theirs)) if theirs else ControlPlane().start()
        cls.users += 1
        return cls.plane

    @classmethod
    def leave(cls) -> None:
        cls.users -= 1
        if cls.users == 0 and cls.plane is not None:
            plane, cls.plane = cls.plane, None
            plane.stop()


def running_control_plane() -> ControlPlane | None:
    """Return the control plane of this run if one has been started."""
    return _Shared.plane


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The API server of this run: our own, or the one $KUBECONFIG names."""
    plane = _Shared.take()
    try:
        yield plane
    finally:
        _Shared.leave()


@pytest.fixture
def own_control_plane(control_plane: ControlPlane) -> ControlPlane:
    """The API server of this run, for tests that stop and restart it; with a borrowed cluster the test is skipped."""
    if not control_plane.owned:
        pytest.skip("needs an API server of its own, and KUBECONFIG names one that is not ours")
    return control_plane


@pytest.fixture(scope="session")
def installed(control_plane: ControlPlane) -> Iterator[Installed]:
    """The custom resources and the scheduler's ServiceAccount, installed from `manifests/`."""
    if control_plane.owned:
        yield install(control_plane.cluster)
        return
    with install_beside(control_plane.cluster, control_plane.processes.folder) as beside:
        yield beside


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """The name of a new namespace; it is emptied after the test, without waiting until it is gone."""
    name = create_namespace(control_plane.cluster, wait_for_account=control_plane.options.controller_manager)
    yield name
    discard_namespace(control_plane.cluster, name)


@pytest.fixture
def make_nodes(control_plane: ControlPlane) -> Iterator[MakeNodes]:
    """Make `make_nodes(3, cpu=4, memory="16Gi", extended={"nvidia.com/gpu": 8})` return the names of three new nodes.

    They are Ready and untainted, named PREFIX-0 and so on (`prefix=`, by default a new one), and are removed after the
    test. Further arguments are those of `node_object`; `timeout=` limits the wait.
    """
    made: list[str] = []

    def make(count: int, *, prefix: str | None = None, timeout: float = 60.0, **what: Any) -> list[str]:
        stem = prefix or f"node-{secrets.token_hex(3)}"
        names = [f"{stem}-{index}" for index in range(count)]
        made.extend(names)
        create_nodes(control_plane.cluster, [node_object(name, **what) for name in names])
        wait_nodes_ready(control_plane.cluster, names, timeout)
        return names

    yield make
    delete_nodes(control_plane.cluster, made)
