"""Plays an operator that brings its own PodGroups, as a file of this folder describes it."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from tests.apiserver.support import until
from volcano_py.api import keys
from volcano_py.local.cluster import LocalCluster

Obj = dict[str, Any]

FILES: Final = {file.stem: file for file in sorted(Path(__file__).parent.glob("*.yaml"))}
GROUPS: Final = f"podgroups.{keys.SCHEDULING_GROUP}"
GROUP_VERSION: Final = f"{keys.SCHEDULING_GROUP}/{keys.SCHEDULING_VERSION}"
REST_S: Final = 0.25
ATTEMPTS: Final = 3
_APPLY: Final = "application/apply-patch+yaml"
_NOT_WIRE: Final = ("owned_by", "count", "after")
_AT_ONCE: Final = {"kubelet.volcano-py/start-after": "0", "kubelet.volcano-py/stop-after": "0"}


def definition(owner: Obj) -> Obj:
    """Return the definition of an operator's own kind; what is in its objects does not matter here."""
    group, _, version = owner["apiVersion"].partition("/")
    singular = owner["kind"].lower()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": owner["kind"], "plural": f"{singular}s", "singular": singular},
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


class Operator:
    """Plays one operator; PodGroups are written over HTTP as it does, all else in this process."""

    def __init__(self, name: str, cluster: LocalCluster, session: aiohttp.ClientSession) -> None:
        self.facts: Obj = yaml.safe_load(FILES[name].read_text())
        self.group_name = str(self.facts["group"]["metadata"]["name"])
        self._cluster = cluster
        self._session = session
        self._references: dict[str, Obj] = {}  # owner references to what was created, by name
        self._group = f"/apis/{GROUP_VERSION}/namespaces/default/podgroups/{self.group_name}"

    async def begin(self) -> None:
        """Create its own objects, then the PodGroup."""
        for owner in self.facts["owners"]:
            if not self._served(owner):
                self._cluster.create(definition(owner))
                await until(lambda kind=owner: self._served(kind))  # type: ignore[misc]
            self._create(owner, owner["apiVersion"], owner["kind"])
        group = self._body(self.facts["group"], GROUP_VERSION, "PodGroup")
        if self.facts["create"] == "apply":
            status, _ = await self._request("PATCH", self._group, group, _APPLY)
        else:
            status, _ = await self._request("POST", self._group.rpartition("/")[0], group)
        assert status == 201

    async def make_pods(self, described: Sequence[Mapping[str, Any]]) -> None:
        """Create pods in order, each when the operator would."""
        if self.facts["waits_for_inqueue"]:
            await until(lambda: self.phase() not in ("", "Pending"))
        for entry in described:
            if "after" in entry:
                await until(lambda name=entry["after"]: self.runs(name))  # type: ignore[misc]
            for index in range(entry["count"]):
                pod = copy.deepcopy(dict(entry))
                pod["metadata"]["namespace"] = "default"
                pod["metadata"]["name"] += f"-{index}" if entry["count"] > 1 else ""
                pod["metadata"]["annotations"] |= _AT_ONCE
                pod["spec"] = {"schedulerName": keys.SCHEDULER_NAME, "restartPolicy": "Never", **pod["spec"]}
                self._create(pod, "v1", "Pod")

    async def sync(self) -> None:
        """Reconcile once, as the operator does with a job that did not change."""
        if self.facts["sync"] == "put":
            await self.put(self.facts["group"]["spec"])

    async def put(self, spec: Obj) -> None:
        """Read the PodGroup and write it back as a whole, with this spec; again after a conflict."""
        for _ in range(ATTEMPTS):
            _, group = await self._request("GET", self._group)
            status, _ = await self._request("PUT", self._group, {**group, "spec": spec})
            if status == 200:
                return
            assert status == 409
        raise AssertionError(f"the PodGroup was changed by others during {ATTEMPTS} attempts in a row")

    async def delete_group(self) -> None:
        """Delete the PodGroup."""
        status, _ = await self._request("DELETE", self._group)
        assert status == 200

    async def delete_owner(self) -> None:
        """Delete the first of its own objects, as its user does."""
        owner = self.facts["owners"][0]
        path = f"/apis/{owner['apiVersion']}/namespaces/default/{owner['kind'].lower()}s/{owner['metadata']['name']}"
        status, _ = await self._request("DELETE", path)
        assert status == 200

    # What is there

    def groups(self) -> list[str]:
        """Return the names of all PodGroups."""
        return sorted(group["metadata"]["name"] for group in self._cluster.registry.objects(GROUPS))

    def group(self) -> Obj:
        """Return the only PodGroup."""
        (group,) = self._cluster.registry.objects(GROUPS)
        return group

    def phase(self) -> str:
        """Return the phase of the only PodGroup."""
        return str(self.group().get("status", {}).get("phase", ""))

    def bound(self) -> list[str]:
        """Return the pods that have a node."""
        return sorted(pod["metadata"]["name"] for pod in self._cluster.pods() if pod["spec"].get("nodeName"))

    def runs(self, name: str) -> bool:
        """Say whether a pod runs."""
        return name in self.running()

    def running(self) -> list[str]:
        """Return the pods that run."""
        return [pod["metadata"]["name"] for pod in self._cluster.pods() if pod["status"].get("phase") == "Running"]

    def all_run(self) -> bool:
        """Say whether every pod runs and the PodGroup says so."""
        status = self.group().get("status", {})
        pods = len(list(self._cluster.pods()))
        return len(self.running()) == pods == status.get("running", 0) and self.phase() == "Running"

    async def end_pods(self) -> None:
        """End all pods with phase Succeeded."""
        await self._cluster.finish(list(self._cluster.pods()))

    async def at_rest(self) -> None:
        """Wait until nobody writes any more."""
        while True:
            version = self._cluster.registry.store.rv
            await asyncio.sleep(REST_S)
            if version == self._cluster.registry.store.rv:
                return

    # Requests

    async def _request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Obj]:
        query = {"fieldManager": "operator"} if content_type == _APPLY else {}
        headers = {"Content-Type": content_type}
        url = self._cluster.url + path
        async with self._session.request(method, url, json=body, params=query, headers=headers) as answer:
            return answer.status, await answer.json()

    def _served(self, described: Mapping[str, Any]) -> bool:
        return self._cluster.registry.resources.of_kind(described["apiVersion"], described["kind"]) is not None

    def _body(self, described: Mapping[str, Any], api_version: str, kind: str) -> Obj:
        body = {key: copy.deepcopy(value) for key, value in described.items() if key not in _NOT_WIRE}
        body |= {"apiVersion": api_version, "kind": kind}
        if "owned_by" in described:
            body["metadata"]["ownerReferences"] = [dict(self._references[described["owned_by"]])]
        return body

    def _create(self, described: Mapping[str, Any], api_version: str, kind: str) -> None:
        registry = self._cluster.registry
        resource = registry.resources.of_kind(api_version, kind)
        assert resource is not None
        meta = registry.create(resource, "default", self._body(described, api_version, kind)).obj["metadata"]
        self._references[meta["name"]] = {
            "apiVersion": api_version,
            "kind": kind,
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
