"""Commands that the schema admits and that name nothing: they are deleted, and others are carried out."""

import pytest

from tests.controllers.managing import controllers
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.kube.resource import COMMANDS, VCJOBS


@pytest.mark.parametrize("name", ["", "../..", "a/b", "a" * 300])
async def test_a_command_for_a_job_that_cannot_exist_is_deleted(server: ApiServer, name: str) -> None:
    target = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": name, "uid": "u"}
    meta = {"name": "c", "namespace": "default"}
    body = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "metadata": meta, "action": "AbortJob"}
    async with controllers(server.url):
        server.create({**body, "target": target})

        await until(lambda: server.get(COMMANDS.label, "c", "default") is None)
