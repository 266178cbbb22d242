"""What tests of installed Deployments refuse to start, because a kubelet would not, or because they do not know it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.deployed import NotStartable, readiness
from tests.e2e.pod_files import expanded, only_container

CONTAINER = {"name": "main", "image": "a:1", "command": ["vc-scheduler"], "args": []}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"initContainers": [{}]}, "the fields ['initContainers'] of a pod"),
        ({"containers": [CONTAINER, CONTAINER]}, "it has 2 containers"),
        ({"containers": [{**CONTAINER, "envFrom": []}]}, "the fields ['envFrom'] of a container"),
        ({"automountServiceAccountToken": False}, "it gets no token"),
    ],
)
def test_what_would_be_ignored_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(NotStartable) as refused:
        only_container({"containers": [CONTAINER], **change}, "p")

    assert says in str(refused.value)


def test_variables_are_expanded_as_kubernetes_does() -> None:
    assert expanded("--a=$(NAME)/$(OTHER)/$$(NAME)", {"NAME": "x"}) == "--a=x/$(OTHER)/$(NAME)"


def test_a_probe_must_ask_a_port_on_which_the_program_listens() -> None:
    probe = {"httpGet": {"path": "/readyz", "port": "health"}}
    ports = [{"name": "health", "containerPort": 11251}]

    assert readiness({"readinessProbe": probe, "ports": ports}, {11251: 4000}, "p") == "http://127.0.0.1:4000/readyz"
    with pytest.raises(NotStartable, match=r"asks port health; it listens on \[8080\]"):
        readiness({"readinessProbe": probe, "ports": ports}, {8080: 4000}, "p")
    with pytest.raises(NotStartable, match="no readinessProbe"):
        readiness({}, {}, "p")
