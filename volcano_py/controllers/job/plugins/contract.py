"""The interface of a job plugin.

A plugin is built with the arguments that stand in ``spec.plugins`` of a job, and serves one generation of that job:
what it computes from the job once, it may keep. It is a plain object: it answers from the job alone, without I/O, clock
or random numbers.

To add one, write a class with the methods of `JobPlugin` and name it in an entry point of the group
``volcano_py.job_plugins``, or, in this package, in the table of `volcano_py.controllers.job.plugins.registry`.
"""

from collections.abc import Callable, Mapping, Sequence
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
    def needs_key_pair(self) -> bool:
        """Whether `objects` needs a generated key pair."""
        ...

    @property
    def fixed_at_start(self) -> Sequence[str]:
        """Variables that depend on the replicas of a task, and that a container reads only when it starts.

        Running pods keep the old values when somebody changes the replicas; the controller then says so in an event.
        """
        ...

    def warnings(self, job: Job) -> Sequence[str]:
        """Return what the users of the job must know although it runs; each text becomes an event on the job.

        Unknown arguments belong here, and arguments whose value cannot be used.
        """
        ...

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return the objects that the pods of the job need.

        ``key_pair`` is for the creation of an object. It is None if the plugin does not need one, and once the object
        exists: then its body lacks the keys that are kept. Raises PluginProblem if the job cannot use this plugin.
        """
        ...

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Change a pod that is about to be created: pod ``index`` of a task. Raises PluginProblem as `objects` does.

        Only the dictionary ``pod`` itself belongs to this pod. All that lies deeper, such as ``pod["spec"]``, may be
        shared with the template and with other pods: replace it by a changed copy and never change it in place. What a
        plugin puts into a pod may be shared in the same way.
        """
        ...


PluginFactory = Callable[[Sequence[str]], JobPlugin]
"""Builds a plugin from its arguments; the class of a plugin is one."""


class PluginProblem(Exception):
    """A job cannot use a plugin as it stands; the text says why and what to change."""
