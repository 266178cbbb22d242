"""One suite, two servers: the embedded API server (always) and a real kube-apiserver (`-m e2e`).

The real server is right by definition. `differences.yaml` lists where the embedded one differs: a listed test must
fail on the embedded server (strictly); every other test must pass on both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.contract.api import CRDS, Api, a_definition, unique
from tests.contract.volcano_kinds import Kinds
from tests.controlplane.fixtures import control_plane, installed
from tests.e2e.control_plane import ControlPlane
from volcano_py.apiserver import ApiServer, ApiServerOptions

__all__ = ["control_plane", "installed"]

OPTIONS = ApiServerOptions(node_lifecycle=True, bookmark_interval_s=0.2)
DIFFERENCES = Path(__file__).with_name("differences.yaml")


def listed_differences() -> dict[str, dict[str, str]]:
    """Known differences by test id (name of the test, with its parameters other than the server)."""
    return {row["id"]: row for row in yaml.safe_load(DIFFERENCES.read_text()) or []}


def difference_id(item: pytest.Item) -> str | None:
    """The id under which `differences.yaml` lists a test of the embedded server."""
    assert isinstance(item, pytest.Function)
    callspec = getattr(item, "callspec", None)
    if callspec is None or callspec.params.get("api") != "embedded":
        return None
    others = [part for part in callspec.id.split("-") if part != "embedded"]
    return f"{item.originalname}[{'-'.join(others)}]" if others else item.originalname


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect listed tests to fail on the embedded server."""
    listed = listed_differences()
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        row = listed.get(difference_id(item) or "")
        if row is not None:
            item.add_marker(pytest.mark.xfail(strict=True, reason=f"{row['what']} ({row['why']})"))


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.e2e)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    """An API server and a new namespace on it."""
    if request.param == "embedded":
        async with ApiServer(OPTIONS) as server, _session() as session:
            yield await _with_namespace(Api(session, server.url))
        return
    patience_s = 90.0  # a real garbage collector discovers new resources within half a minute
    plane: Any = request.getfixturevalue("control_plane")
    async with _session(ssl=plane.ssl_context) as session:
        api = await _with_namespace(Api(session, plane.url, patience_s))
        yield api
        await api.delete(api.path("pods"), {"gracePeriodSeconds": 0})
        await api.delete(f"/api/v1/namespaces/{api.namespace}")


def _session(**connector: Any) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(**connector))


async def _with_namespace(api: Api) -> Api:
    """Create the test's namespace; a real server admits pods only after a controller has made its service account."""
    api.namespace = unique("contract")
    await api.made("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
    await api.until(
        api.path("serviceaccounts", "default"), lambda answer: answer.status == 200, "the service account exists"
    )
    return api


@dataclass(frozen=True)
class Custom:
    """A custom resource for one test: `v1` and `v2` are its collection paths."""

    group: str
    kind: str
    v1: str
    v2: str
    definition: str

    def an_object(self, name: str = "a", version: str = "v1", **fields: Any) -> dict[str, Any]:
        """A valid object with additional fields."""
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": {"size": 1},
            **fields,
        }


async def _define(api: Api, plural: str, kind: str, *, status: bool) -> Custom:
    group = f"{unique('g')}.example.com"
    await api.made(CRDS, a_definition(plural, kind, group, status=status))
    made = _custom(api, plural, kind, group)
    for path in (made.v1, made.v2):
        await api.until(path, lambda answer: answer.status == 200, f"{path} is served")
    return made


def _custom(api: Api, plural: str, kind: str, group: str) -> Custom:
    """The custom resource of a group, with the paths of the test's namespace."""
    paths = [api.path(plural, group_version=f"{group}/{version}") for version in ("v1", "v2")]
    return Custom(group, kind, *paths, definition=f"{CRDS}/{plural}.{group}")


@pytest.fixture(scope="session")
def lasting(control_plane: ControlPlane) -> Iterator[dict[str, Custom]]:
    """Definitions on the real server that tests share, by plural; removed after the last test."""
    made: dict[str, Custom] = {}
    yield made
    for custom in made.values():
        control_plane.request("DELETE", custom.definition)


@asynccontextmanager
async def defined(
    request: pytest.FixtureRequest, api: Api, plural: str, kind: str, *, status: bool
) -> AsyncIterator[Custom]:
    """A shared definition for tests that do not change it: a real server needs two seconds to serve a new one."""
    if request.node.callspec.params["api"] == "embedded":
        yield await _define(api, plural, kind, status=status)
        return
    shared = request.getfixturevalue("lasting")
    if plural not in shared:
        shared[plural] = await _define(api, plural, kind, status=status)
    yield _custom(api, plural, kind, shared[plural].group)


@pytest.fixture
async def things(api: Api) -> AsyncIterator[Custom]:
    """A custom resource with a status subresource, as Volcano's Queue."""
    made = await _define(api, "things", "Thing", status=True)
    yield made
    await api.delete(made.definition)


@pytest.fixture
async def plains(api: Api) -> AsyncIterator[Custom]:
    """A custom resource without a status subresource, as Volcano's PodGroup."""
    made = await _define(api, "plains", "Plain", status=False)
    yield made
    await api.delete(made.definition)


@pytest.fixture
async def kinds(request: pytest.FixtureRequest, api: Api) -> AsyncIterator[Kinds]:
    """Every kind of `manifests/crds`; what a test makes is deleted after it."""
    real = request.node.callspec.params["api"] == "real"
    if real:
        request.getfixturevalue("installed")
    made = Kinds(api, real)
    yield made
    await made.clean_up()
