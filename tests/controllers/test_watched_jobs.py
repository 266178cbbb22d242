"""Jobs are watched once for all controllers, and only if one of them needs them."""

import pytest

from tests.controllers.managing import controllers
from tests.controllers.vcjobs import JOBS
from volcano_py.apiserver import ApiServer


@pytest.mark.parametrize(
    ("chosen", "lists"),
    [({"queue-controller"}, 0), ({"gc-controller", "job-controller", "jobflow-controller", "pg-controller"}, 1)],
)
async def test_jobs_are_listed_only_as_often_as_needed(server: ApiServer, chosen: set[str], lists: int) -> None:
    async with controllers(server.url, controllers=frozenset(chosen)):
        asked = server.requests.snapshot()

    assert max(asked.get(("list", JOBS), 0), asked.get(("watch", JOBS), 0)) == lists
