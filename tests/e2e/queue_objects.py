"""Queues of one test, on a cluster of its own."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from volcano_py.testing import a_queue, manifest

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"

MakeQueue = Callable[..., str]


@pytest.fixture
def make_queue(own_control_plane: ControlPlane) -> Iterator[MakeQueue]:
    """Make queues on a cluster that no one else uses: a queue's share is a share of all its nodes."""
    everywhere = "/api/v1/pods?fieldSelector=spec.schedulerName%3Dvolcano"
    wait_until("no pod of another test is left", lambda: not own_control_plane.request("GET", everywhere)["items"], 30)
    made: list[str] = []

    def make(weight: int, **spec: Any) -> str:
        name = f"q-{secrets.token_hex(3)}"
        own_control_plane.request("POST", QUEUES, manifest(a_queue(name, weight=weight), spec=spec))
        made.append(name)
        return name

    yield make
    for name in made:
        with contextlib.suppress(ApiFailure):
            own_control_plane.request("DELETE", f"{QUEUES}/{name}")
