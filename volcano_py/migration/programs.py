"""Volcano's programs in a cluster: which container runs which one, with which flags and variables."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from volcano_py.migration.findings import Obj, Ref, mapping, ref_of, sequence, text

SCHEDULER: Final = "vc-scheduler"
CONTROLLERS: Final = "vc-controller-manager"
WEBHOOKS: Final = "vc-webhook-manager"
AGENT_SCHEDULER: Final = "vc-agent-scheduler"
HYPER_NODES: Final = "vc-hypernode-controller-manager"
AGENT: Final = "vc-agent"

DEFAULT_RELEASE: Final = "volcano"

_NAMES: Final = (HYPER_NODES, AGENT_SCHEDULER, CONTROLLERS, WEBHOOKS, SCHEDULER, AGENT)
"""Longer names first, because some contain others."""
_APPS: Final = {
    "volcano-scheduler": SCHEDULER,
    "volcano-controller": CONTROLLERS,
    "volcano-controllers": CONTROLLERS,
    "volcano-admission": WEBHOOKS,
    "volcano-agent-scheduler": AGENT_SCHEDULER,
    "volcano-hypernode-controller": HYPER_NODES,
    "volcano-agent": AGENT,
}
"""By the label ``app`` and by the name of the workload, for images with names of somebody's own."""
_OURS: Final = ("volcano-py", "volcano_py")
_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_SWITCHES: Final = frozenset(
    {"leader-elect", "logtostderr", "alsologtostderr", "csi-storage", "priority-class", "cache-dumper", "one-output"}
    | {"skip-headers", "skip-log-headers", "add-dir-header", "inherit-owner-annotations", "version"}
    | {"disable-default-scheduler-config", "legacy-stderr-threshold-behavior"}
)


class Given(NamedTuple):
    """A flag of a command line."""

    name: str
    value: str

    def __str__(self) -> str:
        """Return the flag as users write it."""
        dashes = "-" if len(self.name) == 1 else "--"
        return f"{dashes}{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, DaemonSet or StatefulSet that runs one of Volcano's programs."""

    program: str
    ref: Ref
    obj: Obj
    container: Obj
    flags: tuple[Given, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def replicas(self) -> int:
        """How many pods it has; a DaemonSet counts as one."""
        found = mapping(self.obj, "spec").get("replicas", 1)
        return found if isinstance(found, int) else 1

    @property
    def pod(self) -> Obj:
        """The spec of its pods."""
        return mapping(self.obj, "spec", "template", "spec")

    @property
    def image(self) -> str:
        """The image of the program."""
        return text(self.container, "image")

    @property
    def command(self) -> list[str]:
        """The words that start the program, without arguments of the image."""
        return [str(word) for word in sequence(self.container, "command")]

    def values(self, name: str) -> list[str]:
        """Return the values that a flag is given, in order."""
        return [given.value for given in self.flags if given.name == name]

    def value(self, name: str, default: str = "") -> str:
        """Return the value of a flag: the last one counts."""
        return next(reversed(self.values(name)), default)

    @property
    def elects(self) -> bool:
        """Whether only the holder of a Lease acts; that is the default of the programs, but not of Volcano's chart."""
        return self.value("leader-elect", "true").lower() in {"true", "t", "1"}


def workloads_of(objects: Iterator[Obj] | list[Obj]) -> list[Workload]:
    """Return the workloads that run a program of Volcano, in the order of their names."""
    found = [workload for obj in objects if (workload := _workload(obj)) is not None]
    return sorted(found, key=lambda one: (_NAMES.index(one.program), one.ref))


def _workload(obj: Obj) -> Workload | None:
    containers = [one for one in sequence(obj, "spec", "template", "spec", "containers") if isinstance(one, dict)]
    for container in containers:
        if _is_ours(container):
            return None
        if program := _by_image(container):
            return _read(program, obj, container)
    app = text(obj, "spec", "template", "metadata", "labels", "app") or text(obj, "metadata", "labels", "app")
    program = _APPS.get(app) or _APPS.get(text(obj, "metadata", "name"), "")
    return _read(program, obj, containers[0]) if program and containers else None


def _is_ours(container: Obj) -> bool:
    """Say whether a container runs a program of volcano_py; only these have the flag --log-format."""
    image = text(container, "image").rpartition("/")[2]
    words = [*sequence(container, "command"), *sequence(container, "args")]
    return any(name in image for name in _OURS) or any(str(word).startswith("--log-format") for word in words)


def _by_image(container: Obj) -> str:
    image = text(container, "image").rpartition("/")[2]
    words = [str(word) for word in sequence(container, "command")[:1]]
    for said in (image, *(word.rpartition("/")[2] for word in words)):
        for name in _NAMES:
            if re.search(rf"(^|[^a-z0-9]){name}", said):
                return name
    return ""


def _read(program: str, obj: Obj, container: Obj) -> Workload:
    variables = {text(one, "name"): text(one, "value") for one in sequence(container, "env") if isinstance(one, dict)}
    return Workload(program, ref_of(obj), obj, container, tuple(_flags(container)), variables)


def _flags(container: Obj) -> Iterator[Given]:
    words = [str(word) for word in (*sequence(container, "command"), *sequence(container, "args"))]
    if words and words[0].rpartition("/")[2] in _SHELLS and "-c" in words:
        words = _split(" ".join(words[words.index("-c") + 1 :]))
    place = 0
    while place < len(words):
        word, place = words[place], place + 1
        if not word.startswith("-") or word.strip("-") == "":
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not equals:
            follows = place < len(words) and not words[place].startswith("-")
            if _is_switch(name) or not follows:
                value = "true"
            else:
                value, place = words[place], place + 1
        yield Given(name, value)


def _is_switch(name: str) -> bool:
    return name in _SWITCHES or name.startswith("enable-")


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def releases_of(workloads: Iterable[Workload]) -> set[str]:
    """Return the names of the Helm releases, as the names of workloads and chart begin with them."""
    suffixes = {SCHEDULER: "-scheduler", CONTROLLERS: "-controllers", WEBHOOKS: "-admission"}
    found = {
        one.ref.name.removesuffix(suffixes[one.program])
        for one in workloads
        if one.program in suffixes and one.ref.name.endswith(suffixes[one.program])
    }
    return found | {DEFAULT_RELEASE}


def image_version(image: str) -> tuple[int, int] | None:
    """Return major and minor version of an image's tag, None if the tag is no version."""
    tag = image.partition("@")[0].rpartition("/")[2].rpartition(":")[2].lstrip("v")
    parts = tag.split("-")[0].split(".")
    if len(parts) < 2 or not all(part.isdecimal() for part in parts[:2]):
        return None
    return int(parts[0]), int(parts[1])
