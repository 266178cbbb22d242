"""What a container of a job sees: its environment, files and ports, put together as a kubelet would."""

import copy
import json
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from volcano_py.api.batch import Job
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject
from volcano_py.controllers.job.plugins.registry import build_plugins

KEYS = KeyPair("the private key", "the public key")


@dataclass(frozen=True)
class Seen:
    """One container."""

    env: dict[str, str]
    files: dict[str, str]
    """Path to content."""
    modes: dict[str, int]
    ports: dict[str, int]
    command: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SeenPod:
    """A pod, and its containers by name."""

    pod: dict[str, Any]
    containers: dict[str, Seen]

    def __getitem__(self, container: str) -> Seen:
        return self.containers[container]


def a_vcjob(plugins: Mapping[str, Sequence[str] | None], name: str = "train", **tasks: Any) -> Job:
    """Return a job; a task is a number of replicas, or a number and the spec of its template."""
    specs = []
    for task, given in tasks.items():
        replicas, spec = (given, {}) if isinstance(given, int) else given
        spec = {"containers": [{"name": "main", "image": "image"}], **spec}
        specs.append({"name": task.replace("_", "-"), "replicas": replicas, "template": {"spec": spec}})
    job = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"plugins": plugins, "tasks": specs}}
    return msgspec.convert(json.loads(json.dumps(job)), Job)


def the_pod(job: Job, task: str, index: int = 0) -> SeenPod:
    """Return a pod of a job after its plugins; fail if they change the template or objects that they gave before."""
    plugins = build_plugins(job)
    assert plugins.problems == ()
    found = next(one for one in job.spec.tasks if one.name == task)
    before = copy.deepcopy(found.template)
    pods = []
    for number in (index, index + 1, index):  # others of the same task must not matter
        pod: dict[str, Any] = {**found.template, "metadata": {"name": f"{job.metadata.name}-{task}-{number}"}}
        plugins.customize(pod, job, found, number)
        pods.append(copy.deepcopy(pod))
    assert found.template == before
    assert pods[0] == pods[2]
    return see(pods[0], plugins.objects(job, KEYS if plugins.needs_key_pair else None))


def data_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of a ConfigMap or a Secret."""
    data = body.get("data", {})
    return {key: b64decode(text).decode() for key, text in data.items()} if body["kind"] == "Secret" else dict(data)


def see(pod: dict[str, Any], objects: Iterable[PluginObject]) -> SeenPod:
    """Return what the containers of a pod see; fail if the API server or the kubelet would refuse it."""
    data = {(one.body["kind"], one.body["metadata"]["name"]): data_of(one.body) for one in objects}
    spec = pod["spec"]
    volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
    assert len(volumes) == len(spec.get("volumes", ()))
    containers = {}
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        files, modes = _files(container, volumes, data)
        containers[container["name"]] = Seen(
            _env(container, data), files, modes, _ports(container), container.get("command", [])
        )
    return SeenPod(pod, containers)


def _env(container: Mapping[str, Any], data: Mapping[tuple[str, str], dict[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in container.get("env", ()):
        assert one["name"] not in found, "a variable stands twice"
        if "valueFrom" in one:
            reference = one["valueFrom"]["configMapKeyRef"]
            found[one["name"]] = data["ConfigMap", reference["name"]][reference["key"]]
        else:
            assert isinstance(one["value"], str)
            found[one["name"]] = one["value"]
    return found


def _files(
    container: Mapping[str, Any],
    volumes: Mapping[str, Mapping[str, Any]],
    data: Mapping[tuple[str, str], dict[str, str]],
) -> tuple[dict[str, str], dict[str, int]]:
    files: dict[str, str] = {}
    modes: dict[str, int] = {}
    paths = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
    assert len(set(paths)) == len(paths), "two mounts at one path"
    for mount in container.get("volumeMounts", ()):
        volume = volumes[mount["name"]]
        if "configMap" in volume:
            source, texts = volume["configMap"], data["ConfigMap", volume["configMap"]["name"]]
        elif "secret" in volume:
            source, texts = volume["secret"], data["Secret", volume["secret"]["secretName"]]
        else:
            continue
        items = source.get("items", [{"key": key, "path": key} for key in texts])
        folder = f"{mount['subPath']}/" if "subPath" in mount else ""
        for item in items:
            assert item["path"].startswith(folder)
            path = f"{mount['mountPath']}/{item['path'].removeprefix(folder)}"
            files[path] = texts[item["key"]]
            modes[path] = source.get("defaultMode", 0o644)
    return files, modes


def _ports(container: Mapping[str, Any]) -> dict[str, int]:
    found = {port.get("name", str(port["containerPort"])): port["containerPort"] for port in container.get("ports", ())}
    assert len(found) == len(container.get("ports", ())), "two ports of one name"
    return found
