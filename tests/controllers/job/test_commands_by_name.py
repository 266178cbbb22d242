"""Commands that name a job without its uid, while that job is deleted and created again."""

from typing import Any

import pytest

from tests.controllers.managing import controllers
from tests.controllers.vcjobs import ago, put_job
from tests.daemon.cluster import event_reasons
from tests.effects.waiting import until
from volcano_py.api.timestamp import wire_time
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.manager import ControllerManager
from volcano_py.kube.resource import COMMANDS, VCJOBS

FINALIZER = "example.com/hold"


def job(server: ApiServer) -> dict[str, Any]:
    return server.get(VCJOBS.label, "train", "default") or {}


def phase(server: ApiServer) -> str:
    return str(job(server).get("status", {}).get("state", {}).get("phase", ""))


async def hold_and_delete(server: ApiServer, manager: ControllerManager) -> None:
    """Delete the job; something holds it, and meanwhile no Command is carried out on it."""
    put_job(server, "train")
    await until(lambda: phase(server) == "Pending")
    held = {"metadata": {"finalizers": [FINALIZER]}}
    await manager.client.patch(VCJOBS, "train", held, dict, namespace="default")
    await manager.client.delete(VCJOBS, "train", namespace="default")
    await until(lambda: "deletionTimestamp" in job(server)["metadata"])


def put_command(server: ApiServer) -> None:
    """Ask for the abortion of whichever job has the name."""
    target = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": "train", "uid": ""}
    meta = {"name": "c", "namespace": "default"}
    body = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "metadata": meta, "action": "AbortJob"}
    server.create({**body, "target": target})


async def replace(server: ApiServer, manager: ControllerManager) -> None:
    """Let the old job go, and create one of its name."""
    old = job(server)["metadata"]["uid"]
    await manager.client.patch(VCJOBS, "train", {"metadata": {"finalizers": None}}, dict, namespace="default")
    await until(lambda: not job(server))
    put_job(server, "train")
    assert job(server)["metadata"]["uid"] != old


@pytest.mark.parametrize("older", [False, True])
async def test_a_command_without_uid_does_not_outlast_the_job_of_that_name(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    async with controllers(server.url) as manager:
        await hold_and_delete(server, manager)
        if older:
            monkeypatch.setattr("volcano_py.apiserver.metadata.timestamp", lambda: wire_time(ago(60)))
        put_command(server)
        monkeypatch.undo()
        await replace(server, manager)

        await until(lambda: server.get(COMMANDS.label, "c", "default") is None)
        await until(lambda: phase(server) == ("Pending" if older else "Aborted"))
        await until(lambda: "CommandIssued" in event_reasons(server, VCJOBS.kind, "train"))
