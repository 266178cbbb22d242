"""What one case of the table says, and the plain objects that cases change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.admission.asking import job, queue, task
from tests.admission.changes import Changes, changed
from volcano_py.admission.contract import CREATE, Options

Obj = Mapping[str, Any]

FLAGS: Final = Options(check_allocated_pods=True, queue_gate=True)
"""The flags of all cases."""

NEVER_ASKED: Final = "webhook configurations ask only about the operations that rules are for"
SCHEMA: Final = "the definition of the kind refuses it before webhooks that validate are asked"
NAMES: Final = "API servers refuse such names themselves"
STATUS: Final = "API servers take the status out of what is written through the main endpoint"
ABSENT: Final = "API servers answer themselves that there is no such object"

ALWAYS_THERE: Final = (queue("root"), queue("default"))
"""Queues that every cluster has."""

_POD: Final = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "busybox:1"}]}
_NODE: Final = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}
PLAIN: Final[Mapping[str, Obj]] = {
    "jobs": job(task("main", replicas=4), name="j"),
    "queues": queue("q"),
    "podgroups": {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 1, "queue": "default"}},
    "pods": {"metadata": {"name": "p", "namespace": "ns"}, "spec": _POD},
    "jobflows": {
        "metadata": {"name": "f", "namespace": "ns"},
        "spec": {
            "flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}],
            "jobRetainPolicy": "retain",
        },
    },
    "hypernodes": {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": [_NODE]}},
    "cronjobs": {
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"schedule": "30 6 * * 1-5", "jobTemplate": {"spec": job(task("main"))["spec"]}},
    },
}
"""By the kind of path: an object that every rule takes."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One rule."""

    path: str
    bad: Changes = field(default_factory=dict)
    """What makes an object that is refused; of the object before, if it is an update."""
    good: Changes = field(default_factory=dict)
    """What makes its nearest counterpart that is accepted."""
    says: str
    """A part of the sentence."""
    at: str = ""
    """The path of the field that is to be changed; "" where there is none."""
    operation: str = CREATE
    before: Changes = field(default_factory=dict)
    """For updates: what makes the object before."""
    queues: tuple[Obj, ...] = ()
    """The queues that there are beside root and default; parents first."""
    good_queues: tuple[Obj, ...] | None = None
    """The queues around the counterpart, if they are others."""
    unreachable: str = ""
    """Why a real API server never shows the refused object to the rule; "" if it does."""

    @property
    def kind(self) -> str:
        """The plural of what is judged."""
        return self.path.split("/")[1]

    @property
    def old(self) -> dict[str, Any]:
        """The object before an update."""
        return changed(PLAIN[self.kind], self.before)

    @property
    def queues_around_the_good_one(self) -> tuple[Obj, ...]:
        """The queues that there are when the counterpart is judged."""
        return self.queues if self.good_queues is None else self.good_queues


@dataclass(frozen=True, kw_only=True)
class Default:
    """What a mutation fills in, and what it leaves alone."""

    path: str
    without: Changes
    """What makes an object that lacks something."""
    gets: Mapping[str, Any]
    """What stands in it afterwards, by path; None where nothing stands."""
    namespace: Mapping[str, str] = field(default_factory=dict)
    """Annotations of its namespace."""

    @property
    def kind(self) -> str:
        """The plural of what is changed."""
        return self.path.split("/")[1]

    @property
    def object(self) -> dict[str, Any]:
        """The object as somebody writes it."""
        return changed(PLAIN[self.kind], self.without)


def at(value: Any, path: str) -> Any:
    """Return what stands at a path, None if nothing does."""
    for step in path.split("/"):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step.replace("~1", "/")) if isinstance(value, Mapping) else None
    return value
