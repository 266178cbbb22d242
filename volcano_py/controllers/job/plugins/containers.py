"""Changes of a pod that leave the template alone: each returns a changed copy of what it is given."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from volcano_py.controllers.job.plugins.contract import PluginProblem

Container = dict[str, Any]
EnvVar = Mapping[str, Any]

MAIN: Final = ("containers",)
ALL: Final = ("initContainers", "containers")


def variable(name: str, value: str) -> EnvVar:
    """Return an environment variable with a value."""
    return {"name": name, "value": value}


def own_spec(pod: dict[str, Any]) -> dict[str, Any]:
    """Give the pod a copy of its spec, whose fields may be replaced, and return it."""
    spec = pod["spec"] = dict(pod.get("spec") or ())
    return spec


def change(spec: dict[str, Any], changed: Callable[[Container], Container], kinds: Iterable[str] = MAIN) -> None:
    """Replace the containers of a spec that may be changed."""
    for kind in kinds:
        if found := spec.get(kind):
            spec[kind] = [changed(container) for container in found]


def with_env(container: Container, added: Sequence[EnvVar]) -> Container:
    """Return the container with more variables, after those that it has.

    A variable that the container has already keeps its place and gets the new value: in Volcano the name stands twice,
    and the program sees the later value.
    """
    present = container.get("env")
    if not present:
        return {**container, "env": [*added]}
    ours = {one["name"]: one for one in added}
    merged = []
    placed = set()
    for one in present:
        name = one.get("name")
        if name not in ours:
            merged.append(one)
        elif name not in placed:
            placed.add(name)
            merged.append(ours[name])
    merged += [one for one in added if one["name"] not in placed]
    return {**container, "env": merged}


def with_port(container: Container, name: str, number: int) -> Container:
    """Return the container with a port, unless it has one of that number or of that name."""
    present = container.get("ports") or []
    if any(port.get("containerPort") == number or port.get("name") == name for port in present):
        return container
    return {**container, "ports": [*present, {"name": name, "containerPort": number}]}


def mount(spec: dict[str, Any], volume: Mapping[str, Any], mounted: Mapping[str, Any]) -> None:
    """Add a volume to a spec that may be changed, and mount it into all containers.

    Raises PluginProblem if the name of the volume or the path is taken.
    """
    volumes = spec.get("volumes") or []
    if any(other.get("name") == volume["name"] for other in volumes):
        raise PluginProblem(f'the pod has a volume "{volume["name"]}" of its own: give that volume another name')
    path = mounted["mountPath"]

    def with_mount(container: Container) -> Container:
        mounts = container.get("volumeMounts") or []
        if any(other.get("mountPath") == path for other in mounts):
            name = container.get("name")
            raise PluginProblem(f'container "{name}" mounts something else at {path}: mount that at another path')
        return {**container, "volumeMounts": [*mounts, mounted]}

    spec["volumes"] = [*volumes, volume]
    change(spec, with_mount, ALL)
