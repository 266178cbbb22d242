"""Plugin svc: the pods of a job find each other by name.

A pod gets host and subdomain, and a headless Service with the name of the job makes ``host.subdomain`` known to DNS. A
NetworkPolicy admits nobody but pods of the job. The ConfigMap ``<job>-svc`` lists all addresses. It is mounted at
/etc/volcano, and its keys ``VC_<TASK>_HOSTS`` (addresses, joined by commas) and ``VC_<TASK>_NUM`` (how many) are also
environment variables; in ``<TASK>`` every "-" is "_". ``<task>.host`` has one address per line.

Arguments: ``--publish-not-ready-addresses`` (false) also publishes pods that are not ready;
``--disable-network-policy`` (false); ``--inject-hosts-env`` (true).

Different from Volcano: the ConfigMap follows a change of replicas before pods come or go. A variable above 128 KiB
(some 3,000 pods) is left out, with a warning, because Linux starts no program with it.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from volcano_py.api.batch import Job, Task
from volcano_py.api.plugin_arguments import parse
from volcano_py.controllers.job.plugins.containers import ALL, EnvVar, change, mount, own_spec, with_env
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject
from volcano_py.controllers.job.plugins.hosts import (
    addresses,
    check_lists,
    check_service_name,
    check_size,
    fits_a_variable,
    selector,
    size_of_addresses,
)
from volcano_py.kube.resource import CONFIG_MAPS, NETWORK_POLICIES, SERVICES, Resource

MOUNT_PATH: Final = "/etc/volcano"


class SvcArguments(msgspec.Struct, frozen=True, rename="kebab"):
    """Arguments of svc."""

    publish_not_ready_addresses: bool = False
    disable_network_policy: bool = False
    inject_hosts_env: bool = True


class Svc:
    """Adds host, subdomain, the list of addresses, and the variables."""

    needs_key_pair = False

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments, self._unusable = parse(SvcArguments, arguments)
        self._data: dict[str, str] | None = None
        self._objects: tuple[PluginObject, ...] | None = None
        self._env: list[EnvVar] | None = None

    @property
    def fixed_at_start(self) -> Sequence[str]:
        """The variables, if there are any; files follow the ConfigMap."""
        return ("VC_*_HOSTS", "VC_*_NUM") if self._arguments.inject_hosts_env else ()

    def warnings(self, job: Job) -> Sequence[str]:
        """Return unusable arguments, and variables that are too long."""
        if not self._arguments.inject_hosts_env:
            return self._unusable
        sizes = ((size_of_addresses(job, task), *_keys(task)) for task in job.spec.tasks)
        too_long = [
            f"a container cannot have variable {hosts}: {size} bytes are too many; read {MOUNT_PATH}/{file}"
            for size, file, hosts, _ in sizes
            if not fits_a_variable(hosts, size)
        ]
        return (*self._unusable, *too_long)

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return ConfigMap, Service and NetworkPolicy."""
        if self._objects is None:
            self._objects = self._new_objects(job)
        return self._objects

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Add host, subdomain, mounted ConfigMap and variables."""
        spec = own_spec(pod)
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or job.metadata.name
        name = _config_map(job)
        mount(spec, {"name": name, "configMap": {"name": name}}, {"name": name, "mountPath": MOUNT_PATH})
        if self._arguments.inject_hosts_env:
            env = self._variables(job)
            change(spec, lambda container: with_env(container, env), ALL)

    def _new_objects(self, job: Job) -> tuple[PluginObject, ...]:
        name = job.metadata.name
        check_service_name(name)
        check_lists(f"ConfigMap {_config_map(job)}", job, 2)
        data = self._hosts(job)
        check_size(f"ConfigMap {_config_map(job)}", data)
        labels = selector(job)
        service = {
            "clusterIP": "None",
            "selector": labels,
            "publishNotReadyAddresses": self._arguments.publish_not_ready_addresses,
        }
        found = [
            PluginObject(CONFIG_MAPS, _body(CONFIG_MAPS, _config_map(job), data=data), follow=("data",)),
            PluginObject(SERVICES, _body(SERVICES, name, spec=service)),
        ]
        if not self._arguments.disable_network_policy:
            policy = {
                "podSelector": {"matchLabels": labels},
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {"matchLabels": labels}}]}],
            }
            found.append(PluginObject(NETWORK_POLICIES, _body(NETWORK_POLICIES, name, spec=policy)))
        return tuple(found)

    def _hosts(self, job: Job) -> dict[str, str]:
        if self._data is None:
            self._data = {}
            for task in job.spec.tasks:
                found = addresses(job, task)
                file, hosts, number = _keys(task)
                self._data |= {file: "\n".join(found), hosts: ",".join(found), number: str(len(found))}
        return self._data

    def _variables(self, job: Job) -> list[EnvVar]:
        if self._env is None:
            data = self._hosts(job)
            variables = (key for task in job.spec.tasks for key in _keys(task)[1:])
            names = [key for key in variables if fits_a_variable(key, len(data[key].encode()))]
            source = _config_map(job)
            self._env = [
                {"name": name, "valueFrom": {"configMapKeyRef": {"name": source, "key": name}}} for name in names
            ]
        return self._env


def _config_map(job: Job) -> str:
    return f"{job.metadata.name}-svc"


def _keys(task: Task) -> tuple[str, str, str]:
    """Return the keys of a task: the file with its addresses, the variable with them, and that with their number."""
    name = task.name.replace("-", "_")
    return f"{name}.host", f"VC_{name.upper()}_HOSTS", f"VC_{name.upper()}_NUM"


def _body(resource: Resource, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, **fields}
