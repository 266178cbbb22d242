"""What the rules of admission are given and what they answer: the contract between rules and the server.

A rule is a pure function of a review, a view of other objects, and options. It reads other objects only through the
view, so the server notes what a verdict rests on, and asks the rule again over objects that it has just read.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol

from volcano_py.api import keys
from volcano_py.api.plugin_arguments import JOB_PLUGINS

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

Obj = Mapping[str, Any]
"""An object as JSON brings it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One review, as far as rules need it."""

    operation: str
    """``CREATE``, ``UPDATE`` or ``DELETE``."""
    namespace: str = ""
    name: str = ""
    object: Obj = field(default_factory=dict)
    """Empty for a deletion."""
    old: Obj = field(default_factory=dict)
    """Empty for a creation."""
    subresource: str = ""
    """Such as ``status``; rules judge only whole objects."""


class View(Protocol):
    """The other objects that verdicts rest on."""

    def queue(self, name: str) -> Obj | None:
        """Return the queue of this name, None if there is none."""

    def queues(self) -> Iterable[Obj]:
        """Return all queues."""

    def children(self, name: str) -> Iterable[Obj]:
        """Return the queues whose parent this queue is."""

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """Return the annotations of a namespace, none if it does not exist."""

    def allocated_pods(self, queue: str) -> int:
        """Return the pods that a queue holds, as its ``status.allocated`` says."""


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Pods of a kind, and what they get: where they run and who schedules them."""

    name: str = ""
    key: str = ""
    """``namespace``, ``annotation``, or empty for the annotation of the group's own name."""
    values: tuple[str, ...] = ()
    scheduler_name: str = ""
    tolerations: tuple[Obj, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the nodes: they become the pod's node selector."""
    affinity: str = ""
    """As JSON."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the flags and the configuration file of the webhooks say."""

    scheduler_names: tuple[str, ...] = (keys.SCHEDULER_NAME,)
    max_queue_depth: int = 5
    protect_root_queue: bool = True
    check_allocated_pods: bool = False
    """Whether a queue that holds pods may not be deleted."""
    resource_groups: tuple[ResourceGroup, ...] = ()
    queue_gate: bool = False
    """Whether pods that ask for it get the scheduling gate of their queue."""
    job_plugins: frozenset[str] = frozenset(JOB_PLUGINS)
    """The plugins that jobs may name."""
    pod_level_resources: bool = True
    """Whether pods may have resources of their own, above those of their containers."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that is wrong with an object."""

    message: str
    """Volcano's sentence: tools match it."""
    field: str = ""
    """The path of the field that is to be changed."""
    hint: str = ""
    """A way out."""


class Joining(Enum):
    """How the sentences of several refusals become one text."""

    RUN_ON = "jobs: one after the other; each brings its own space and semicolon"
    SEMICOLON = "cron jobs, PodGroups, pods: a semicolon between them"
    LIST = "queues and HyperNodes: several stand in brackets, with commas"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a review."""

    refusals: tuple[Refusal, ...] = ()
    patch: tuple[Obj, ...] = ()
    """A JSON Patch; empty if nothing changes."""
    warnings: tuple[str, ...] = ()
    joining: Joining = Joining.RUN_ON

    @property
    def allowed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.refusals

    @property
    def text(self) -> str:
        """All sentences, joined as Volcano joins them before it trims the ends."""
        sentences = [refusal.message for refusal in self.refusals]
        if self.joining is Joining.LIST and len(sentences) > 1:
            return f"[{', '.join(sentences)}]"
        if self.joining is Joining.SEMICOLON:
            return ";".join(
                one if index == 0 or one.startswith(" ") else f" {one}" for index, one in enumerate(sentences)
            )
        return "".join(sentences)

    @property
    def message(self) -> str:
        """All sentences, as the answer to a review has them."""
        return self.text.strip()


Rule = Callable[[Request, View, Options], Verdict]
ALLOWED: Final = Verdict()
