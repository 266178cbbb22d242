"""Pods: admission that a shared real server cannot be asked about."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.support import a_bare_pod
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.kinds.pods import qos_class
from volcano_py.apiserver.status import StatusError
from volcano_py.testing import a_priority_class, manifest


def _priority(pod: dict[str, Any]) -> tuple[str | None, int, str]:
    spec = pod["spec"]
    return spec.get("priorityClassName"), spec["priority"], spec["preemptionPolicy"]


async def test_pods_without_a_priority_class_get_the_global_default() -> None:
    server = ApiServer()
    server.create({**manifest(a_priority_class("usual", 50, global_default=True)), "preemptionPolicy": "Never"})
    server.create(manifest(a_priority_class("other", 90)))
    assert _priority(server.create(a_bare_pod("a"))) == ("usual", 50, "Never")
    assert _priority(server.create(a_bare_pod("b", priorityClassName="other"))) == ("other", 90, "PreemptLowerPriority")


async def test_the_priority_that_the_class_gives_may_be_written_down() -> None:
    server = ApiServer()
    server.create(manifest(a_priority_class("high", 90)))
    assert _priority(server.create(a_bare_pod(priorityClassName="high", priority=90)))[1] == 90
    with pytest.raises(StatusError, match=r"must not be provided in pod spec"):
        server.create(a_bare_pod("b", priorityClassName="high", priority=91))


def test_quality_of_service_includes_init_containers() -> None:
    full = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    guaranteed = {"containers": [{"resources": full}], "initContainers": [{"resources": full}]}
    assert qos_class(guaranteed) == "Guaranteed"
    assert qos_class({**guaranteed, "initContainers": [{}]}) == "Burstable"
    assert qos_class({"containers": [{}]}) == "BestEffort"


async def test_a_small_pod_from_a_template_keeps_its_fields() -> None:
    server = ApiServer()
    pod = server.create(a_bare_pod(schedulerName="volcano", restartPolicy="Never", terminationGracePeriodSeconds=0))
    assert (pod["spec"]["schedulerName"], pod["spec"]["restartPolicy"]) == ("volcano", "Never")
    assert pod["spec"]["terminationGracePeriodSeconds"] == 0
