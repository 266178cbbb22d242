"""Tests that need helm are marked `e2e`, because it is built with the control plane; they need no cluster."""

from __future__ import annotations

import pytest

from tests.chart.rendering import Helm
from tests.controlplane.binaries import find_binaries


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "helm" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm, with a home of its own."""
    return Helm(find_binaries()["helm"], tmp_path_factory.mktemp("helm"))
