"""Stages, read from YAML: what happens to an object in a given state, and when.

    name: pod-run
    resource: pods
    when:                                   # all must hold
      - {field: spec.nodeName, exists: true}
      - {field: status.phase, in: [Pending]}
      - {field: metadata.deletionTimestamp, exists: false}
    delay:
      seconds: 1                            # after the object came into this state
      jitter: 0.5                           # up to so many seconds more, the same for the same object
      annotation: kubelet.volcano-py/after  # seconds from an annotation, if it is there
      command: 'sleep\\s+([0-9.]+)'          # or from the first container's command and args
    then:
      status: {...}                         # strategic merge patch of the status
      # or
      delete: true                          # deletion with grace period 0

A delay that names an annotation or a command but no `seconds` applies only to objects that have one of them: a pod
whose command gives no duration runs until it is deleted.

Texts of the patch may hold expressions: `${now}`, `${pod_ip}`, `${host_ip}`, `${exit_code}` (from `exit N` in the
command), `${exit_reason}` and `${end_phase}` (Completed and Succeeded, or Error and Failed, as the exit code says),
or any field path of the object. A mapping `{$each: PATH, value: {...}}` becomes a list with one value per item, and
`${item....}` reads the item.

Selectors of one resource must exclude each other: an object that two stages match is left alone, with an error
that names both.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from volcano_py.apiserver.kubelet.fields import parse_path, read_path
from volcano_py.apiserver.objects import Obj

_TESTS = ("exists", "in", "not_in")
_EXPRESSION = re.compile(r"\$\{([^}]+)\}")


class StageError(ValueError):
    """A stage that cannot be used; the message names the file or stage, and the key."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One test of one field."""

    path: str
    exists: bool | None = None
    among: tuple[Any, ...] | None = None
    not_among: tuple[Any, ...] | None = None

    def holds(self, obj: Obj) -> bool:
        """Whether the object passes the test."""
        value = read_path(obj, self.path)
        if self.exists is not None and (value is not None) is not self.exists:
            return False
        if self.among is not None and value not in self.among:
            return False
        return self.not_among is None or value not in self.not_among


@dataclass(frozen=True, slots=True)
class Delay:
    """When a stage takes effect, in seconds after the object came into its state."""

    seconds: float | None = None
    jitter: float = 0.0
    annotation: str = ""
    command: str = ""

    def of(self, obj: Obj) -> float | None:
        """The delay for this object, or None if nothing gives one."""
        found = self._from_object(obj)
        if found is None:
            found = self.seconds
        if found is None:
            return None
        if self.jitter:
            found += random.Random(str(read_path(obj, "metadata.uid"))).uniform(0, self.jitter)
        return found

    def _from_object(self, obj: Obj) -> float | None:
        if self.annotation:
            text = (obj["metadata"].get("annotations") or {}).get(self.annotation)
            if text is not None:
                try:
                    return float(text)
                except ValueError:
                    return None
        if self.command and (match := re.search(self.command, command_of(obj))):
            return float(match[1])
        return None


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage, ready to be asked."""

    name: str
    resource: str
    conditions: tuple[Condition, ...]
    delay: Delay
    status: Any = None
    delete: bool = False

    def matches(self, obj: Obj) -> bool:
        """Whether the object is in the state this stage is about."""
        return all(condition.holds(obj) for condition in self.conditions) and self.delay.of(obj) is not None


@dataclass(slots=True)
class Facts:
    """What expressions may read besides the object: the time and addresses."""

    now: str
    pod_ip: str = "10.0.0.1"
    host_ip: str = "10.255.0.1"
    names: dict[str, Any] = field(default_factory=dict)


def command_of(pod: Obj) -> str:
    """Command and args of a pod's first container as one line."""
    containers = read_path(pod, "spec.containers") or []
    if not containers:
        return ""
    first = containers[0]
    return " ".join(str(part) for part in [*(first.get("command") or []), *(first.get("args") or [])])


def exit_code_of(pod: Obj) -> int:
    """The exit code that the command asks for (`exit N`), otherwise 0."""
    match = re.search(r"\bexit\s+([0-9]+)", command_of(pod))
    return int(match[1]) if match else 0


def render(template: Any, obj: Obj, facts: Facts, item: Any = None) -> Any:
    """A template with its expressions replaced."""
    if isinstance(template, dict):
        if "$each" in template:
            items = read_path(obj, template["$each"]) or []
            return [render(template["value"], obj, facts, one) for one in items]
        return {key: render(value, obj, facts, item) for key, value in template.items()}
    if isinstance(template, list):
        return [render(value, obj, facts, item) for value in template]
    if not isinstance(template, str):
        return template
    whole = _EXPRESSION.fullmatch(template)
    if whole:
        return _evaluate(whole[1], obj, facts, item)
    return _EXPRESSION.sub(lambda match: str(_evaluate(match[1], obj, facts, item)), template)


def _evaluate(expression: str, obj: Obj, facts: Facts, item: Any) -> Any:
    match expression:
        case "now":
            return facts.now
        case "pod_ip":
            return read_path(obj, "status.podIP") or facts.pod_ip
        case "host_ip":
            return read_path(obj, "status.hostIP") or facts.host_ip
        case "exit_code":
            return exit_code_of(obj)
        case "exit_reason":
            return "Error" if exit_code_of(obj) else "Completed"
        case "end_phase":
            return "Failed" if exit_code_of(obj) else "Succeeded"
    if expression.startswith("item."):
        return read_path(item, expression.removeprefix("item."))
    return read_path(obj, expression)


def select(stages: Iterable[Stage], obj: Obj) -> Stage | None:
    """The stage (of those of its resource) that an object is in; StageError if two match."""
    found: Stage | None = None
    for stage in stages:
        if stage.matches(obj):
            if found is not None:
                raise StageError(
                    f"stages {found.name} and {stage.name} both match {stage.resource} {obj['metadata']['name']}: "
                    "make their `when` exclude each other"
                )
            found = stage
    return found


def load_stage(text: str, source: str) -> Stage:
    """Read one stage; StageError names what is wrong."""
    data = yaml.safe_load(text)
    if not isinstance(data, dict):
        raise StageError(f"{source}: a stage is a mapping with name, resource, when, delay and then")
    _only(data, ("name", "resource", "when", "delay", "then"), source)
    try:
        name, resource, then = str(data["name"]), str(data["resource"]), dict(data["then"])
        conditions = tuple(_condition(item, source) for item in data["when"])
    except (KeyError, TypeError) as error:
        raise StageError(f"{source}: missing or misshapen: {error}") from error
    delay = data.get("delay") or {}
    _only(delay, ("seconds", "jitter", "annotation", "command"), f"{source}: delay")
    _only(then, ("status", "delete"), f"{source}: then")
    if ("status" in then) == bool(then.get("delete")):
        raise StageError(f"{source}: then: give either status or delete: true")
    return Stage(name, resource, conditions, _delay(delay), status=then.get("status"), delete=bool(then.get("delete")))


def _delay(data: Obj) -> Delay:
    seconds = data.get("seconds")
    if seconds is None and not data.get("annotation") and not data.get("command"):
        seconds = 0.0
    return Delay(
        seconds=None if seconds is None else float(seconds),
        jitter=float(data.get("jitter", 0.0)),
        annotation=str(data.get("annotation", "")),
        command=str(data.get("command", "")),
    )


def _condition(data: Obj, source: str) -> Condition:
    _only(data, ("field", *_TESTS), f"{source}: when")
    path = data["field"]
    try:
        parse_path(path)
    except ValueError as error:
        raise StageError(f"{source}: when: {error}") from error
    if not any(test in data for test in _TESTS):
        raise StageError(f"{source}: when: field {path} needs one of {', '.join(_TESTS)}")
    among, not_among = data.get("in"), data.get("not_in")
    return Condition(
        path,
        exists=data.get("exists"),
        among=None if among is None else tuple(among),
        not_among=None if not_among is None else tuple(not_among),
    )


def _only(data: Obj, known: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise StageError(f"{where}: unknown key {unknown[0]}; known are {', '.join(known)}")


def load_stages(folder: Path | None = None) -> tuple[Stage, ...]:
    """The stages of a folder (by default those that come with the package), in order of file name."""
    if folder is not None:
        paths = sorted(folder.glob("*.yaml"))
        if not paths:
            raise StageError(f"{folder}: no stages found; it must hold *.yaml files")
        return tuple(load_stage(path.read_text(), path.name) for path in paths)
    built_in = list(files("volcano_py.apiserver").joinpath("stages").iterdir())
    chosen = sorted((item for item in built_in if item.name.endswith(".yaml")), key=lambda item: item.name)
    return tuple(load_stage(item.read_text(), item.name) for item in chosen)
