"""The interface of a job plugin.

A plugin is built for one job with the arguments that stand in ``spec.plugins`` of that job. It is a plain object: it
answers from the job alone, without I/O, clock or random numbers.

To add one, write a class with the methods of `JobPlugin` and name it in an entry point of the group
``volcano_py.job_plugins``, or, in this package, in the table of `volcano_py.controllers.job.plugins.registry`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from volcano_py.api.batch import Job, Task
from volcano_py.kube.resource import Resource

ENTRY_POINTS: Final = "volcano_py.job_plugins"


class KeyPair(NamedTuple):
    """An RSA key pair: the private key as PEM (PKCS 1), the public key as a line of authorized_keys."""

    private: str
    public: str


@dataclass(frozen=True, slots=True)
class PluginObject:
    """An object that the pods of a job need, such as a Service.

    The controller adds namespace and owner, creates it before the first pod, and deletes it when the job has ended. An
    object of that name that belongs to somebody else is neither changed nor deleted.
    """

    resource: Resource
    body: Mapping[str, Any]
    """The object with ``metadata.name``; without namespace and owner references."""
    follow: tuple[str, ...] = ()
    """Top-level fields, such as ``data``, that are written again when they change. Others are written once."""
    keep: tuple[str, ...] = ()
    """Keys within the fields of ``follow`` that are never written again, such as a generated private key."""


class JobPlugin(Protocol):
    """Adds something to the pods of a job, and objects that the pods need."""

    @property
    def unknown_arguments(self) -> Sequence[str]:
        """Arguments that the plugin does not know; each becomes an event on the job, and the job runs."""
        ...

    @property
    def needs_key_pair(self) -> bool:
        """Whether `objects` needs a generated key pair."""
        ...

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return the objects that the pods of the job need.

        ``key_pair`` is given if `needs_key_pair` says so. Raises PluginProblem if the job cannot use this plugin.
        """
        ...

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Change a pod that is about to be created: pod ``index`` of a task. Raises PluginProblem as `objects` does."""
        ...


class PluginProblem(Exception):
    """A job cannot use a plugin as it stands; the text says why and what to change."""
