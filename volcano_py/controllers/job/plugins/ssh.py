"""Plugin ssh: every container of a job can log in to every other one without a password.

The Secret ``<job>-ssh`` has a key pair, which is generated once for the job, and a client configuration with an entry
for each pod. It is mounted at /root/.ssh. An SSH server is up to the image.

Arguments: ``--ssh-key-file-path`` (/root/.ssh); ``--ssh-private-key`` and ``--ssh-public-key`` replace the generated
pair; ``--ssh-port`` (22) is the port in the client configuration.

Different from Volcano: the configuration in the Secret follows a change of replicas (a container that runs keeps the
file that it has). The generated pair is never replaced while the Secret exists, so that pods which survive a
restart of others can still log in.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from volcano_py.api.batch import Job, Task
from volcano_py.api.plugin_arguments import Port, parse
from volcano_py.controllers.job.plugins.containers import mount, own_spec
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject
from volcano_py.controllers.job.plugins.hosts import check_lists, check_size, host_names
from volcano_py.kube.resource import SECRETS

_ROOT: Final = "/root/.ssh"
_FOLDER: Final = ".ssh"  # within the volume; a mount of the folder alone has rights that sshd accepts
_PRIVATE, _PUBLIC, _AUTHORIZED, _CONFIG = "id_rsa", "id_rsa.pub", "authorized_keys", "config"
_FILES: Final = (_PRIVATE, _PUBLIC, _AUTHORIZED, _CONFIG)
_MODE: Final = 0o600
_MODE_ELSEWHERE: Final = 0o644  # users other than root must be able to read the files


class SshArguments(msgspec.Struct, frozen=True, rename="kebab"):
    """Arguments of ssh."""

    ssh_key_file_path: str = _ROOT
    ssh_private_key: str = ""
    ssh_public_key: str = ""
    ssh_port: Port = 22


class Ssh:
    """Mounts keys and client configuration into all containers."""

    fixed_at_start: tuple[str, ...] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments, self._unusable = parse(SshArguments, arguments)
        self._secret: tuple[KeyPair | None, PluginObject] | None = None
        self._mounted: tuple[dict[str, Any], dict[str, Any]] | None = None

    @property
    def needs_key_pair(self) -> bool:
        """Whether the arguments have no private key."""
        return not self.arguments.ssh_private_key

    def warnings(self, job: Job) -> Sequence[str]:
        """Return unusable arguments, and half a key pair."""
        half = []
        if self.arguments.ssh_public_key and not self.arguments.ssh_private_key:
            half = ["--ssh-public-key is not used without --ssh-private-key: a key pair is generated"]
        elif self.arguments.ssh_private_key and not self.arguments.ssh_public_key:
            half = ["--ssh-private-key without --ssh-public-key: no key is authorized, so nobody can log in with it"]
        return (*self._unusable, *half)

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return the Secret; without a key pair, and if none is in the arguments, it has only the configuration."""
        if not self.needs_key_pair:
            key_pair = KeyPair(self.arguments.ssh_private_key, self.arguments.ssh_public_key)
        if self._secret is None or self._secret[0] != key_pair:
            self._secret = key_pair, self._new_secret(job, key_pair)
        return (self._secret[1],)

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Mount the Secret."""
        if self._mounted is None:
            self._mounted = self._new_mount(job)
        mount(own_spec(pod), *self._mounted)

    def _new_secret(self, job: Job, key_pair: KeyPair | None) -> PluginObject:
        check_lists(f"Secret {_secret(job)}", job, 2)  # every host stands in it twice
        data = {_CONFIG: self._client_configuration(job)}
        if key_pair is not None:
            data |= {_PRIVATE: key_pair.private, _PUBLIC: key_pair.public, _AUTHORIZED: key_pair.public}
        check_size(f"Secret {_secret(job)}", data)
        body = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {"name": _secret(job)},
            "type": "Opaque",
            "data": {key: b64encode(value.encode()).decode() for key, value in data.items()},
        }
        keep = (_PRIVATE, _PUBLIC, _AUTHORIZED) if self.needs_key_pair else ()
        return PluginObject(SECRETS, body, follow=("data",), keep=keep)

    def _new_mount(self, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
        name = _secret(job)
        path = self.arguments.ssh_key_file_path
        source = {
            "secretName": name,
            "items": [{"key": key, "path": f"{_FOLDER}/{key}"} for key in _FILES],
            "defaultMode": _MODE if path == _ROOT else _MODE_ELSEWHERE,
        }
        return {"name": name, "secret": source}, {"name": name, "mountPath": path, "subPath": _FOLDER}

    def _client_configuration(self, job: Job) -> str:
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job.spec.tasks:
            for host, subdomain in host_names(job, task):
                lines += [f"Host {host}", f"  HostName {host}.{subdomain}", f"  Port {self.arguments.ssh_port}"]
        return "\n".join([*lines, ""])


def _secret(job: Job) -> str:
    return f"{job.metadata.name}-ssh"
