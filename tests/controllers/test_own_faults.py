"""An object that our code cannot cope with costs no other object its controller, and ends no process."""

from typing import Any

import pytest

from tests.controllers.managing import controllers, group_of, put_pod
from tests.daemon.cluster import stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.podgroup import decision
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.runtime.supervisor import TaskFailed

TURNS = "volcano_py_controller_turns_total"


@pytest.fixture
def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan no PodGroup of pods whose name begins with bad."""
    real = decision.plan

    def plan(key: Any, group: Any, pods: Any, *others: Any) -> Any:
        if pods[0].metadata.name.startswith("bad"):
            raise KeyError("label")
        return real(key, group, pods, *others)

    monkeypatch.setattr(decision, "plan", plan)


@pytest.mark.usefixtures("_broken")
async def test_a_manager_survives_an_object_that_its_code_cannot_cope_with(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnFaults, "survived", True)
    async with controllers(server.url) as manager:

        def faults() -> float:
            labels = {"controller": "pg-controller", "result": "fault"}
            return manager.registry.get_sample_value(TURNS, labels) or 0.0

        put_pod(server, "bad")
        await until(lambda: faults() > 0)
        put_pod(server, "good")
        await until(lambda: group_of(server, "good"))
        assert (manager.not_ready(), group_of(server, "bad")) == ([], "")

        for number in range(20):
            put_pod(server, f"bad-{number}")
        await until(manager.not_ready)
        assert "pg-controller" in manager.not_ready()[0]
        assert manager.registry.get_sample_value("volcano_py_ready") == 0.0
        put_pod(server, "good-again")
        await until(lambda: group_of(server, "good-again"))
        await until(lambda: manager.not_ready() == [])  # the turn is done a moment after its write


@pytest.mark.usefixtures("_broken")
async def test_tests_see_faults(server: ApiServer) -> None:
    async def run() -> None:
        async with controllers(server.url):
            put_pod(server, "bad")
            await stays(lambda: group_of(server, "bad") == "")

    with pytest.raises(TaskFailed, match="KeyError"):
        await run()
