"""Containers and init containers: name, image, ports, variables, mounts, probes, hooks."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from volcano_py.admission import names
from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import (
    Flaws,
    duplicate,
    each,
    forbidden,
    invalid,
    not_found,
    not_supported,
    one_of,
    required,
    within,
)
from volcano_py.admission.pod_rules.probes import PROBES, handler, probe
from volcano_py.admission.pod_rules.references import IN_VARIABLE, field_reference, resource_reference
from volcano_py.admission.pod_rules.resources import container_resources
from volcano_py.admission.pod_rules.security import container_security
from volcano_py.admission.pod_rules.volumes import no_backsteps, relative, sources
from volcano_py.admission.reading import entries, number, part, parts, text

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_RESTART: Final = ("Always", "Never", "OnFailure")
_PROPAGATION: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")
_ALWAYS: Final = "Always"
_GRACE_S: Final = 30
_MOST_RULES: Final = 20
_MOST_CODES: Final = 255
_BLOCK_SOURCES: Final = ("persistentVolumeClaim", "ephemeral")


def containers(spec: Obj, path: str) -> Flaws:
    """Judge all containers of a pod."""
    found = parts(spec, "containers")
    if not found:
        yield required(f"{path}.containers")
    taken: set[str] = set()
    host_ports: set[str] = set()
    for index, container in enumerate(found):
        at = f"{path}.containers[{index}]"
        yield from _container(container, at, spec, taken)
        yield from _running(container, at, spec)
        yield from _restart(container, at)
        yield from _host_ports(container, at, host_ports)
        yield from _on_host_network(container, at, spec)
    for index, container in enumerate(parts(spec, "initContainers")):
        at = f"{path}.initContainers[{index}]"
        yield from _container(container, at, spec, taken)
        yield from _host_ports(container, at, set())
        yield from _restart(container, at)
        if text(container, "restartPolicy") == _ALWAYS:
            yield from _running(container, at, spec)
        else:
            yield from _not_running(container, at)
    if entries(spec, "ephemeralContainers"):
        yield forbidden(f"{path}.ephemeralContainers", "ephemeral containers not allowed in pod template")


def _container(container: Obj, path: str, spec: Obj, taken: set[str]) -> Flaws:
    """Judge what all containers have; ``taken`` are the names of those before."""
    name, image = text(container, "name"), text(container, "image")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from each(f"{path}.name", name, names.label(name))
        if name in taken:
            yield duplicate(f"{path}.name", name)
        taken.add(name)
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from one_of(f"{path}.imagePullPolicy", text(container, "imagePullPolicy"), _PULL)
    yield from one_of(f"{path}.terminationMessagePolicy", text(container, "terminationMessagePolicy"), _MESSAGES)
    yield from _ports(container, f"{path}.ports")
    yield from _variables(container, path, spec)
    yield from _mounts(container, path, spec)
    claims = [text(claim, "name") for claim in parts(spec, "resourceClaims")]
    yield from container_resources(part(container, "resources"), f"{path}.resources", claims)
    yield from _resizing(container, f"{path}.resizePolicy", text(spec, "restartPolicy"))
    yield from container_security(part(container, "securityContext"), f"{path}.securityContext", spec)


# Ports


def _ports(container: Obj, path: str) -> Flaws:
    taken: set[str] = set()
    for index, port in enumerate(parts(container, "ports")):
        at, name = f"{path}[{index}]", text(port, "name")
        if name:
            problems = names.port_name(name)
            yield from each(f"{at}.name", name, problems)
            if name in taken:
                yield duplicate(f"{at}.name", name)
            taken.add(name)
        if not number(port, "containerPort"):
            yield required(f"{at}.containerPort")
        else:
            yield from within(f"{at}.containerPort", number(port, "containerPort"), 1, 65535)
        if number(port, "hostPort"):
            yield from within(f"{at}.hostPort", number(port, "hostPort"), 1, 65535)
        yield from one_of(f"{at}.protocol", text(port, "protocol"), _PROTOCOLS)


def _host_ports(container: Obj, path: str, taken: set[str]) -> Flaws:
    for index, port in enumerate(parts(container, "ports")):
        host_port = number(port, "hostPort")
        if host_port:
            place = f"{text(port, 'protocol') or 'TCP'}/{text(port, 'hostIP')}/{host_port}"
            if place in taken:
                yield duplicate(f"{path}.ports[{index}].hostPort", place)
            taken.add(place)


def _on_host_network(container: Obj, path: str, spec: Obj) -> Flaws:
    if spec.get("hostNetwork") is not True:
        return
    for index, port in enumerate(parts(container, "ports")):
        host_port = number(port, "hostPort")
        if host_port and host_port != number(port, "containerPort"):
            detail = "must match `containerPort` when `hostNetwork` is true"
            yield invalid(f"{path}.ports[{index}].hostPort", host_port, detail)


# Variables

_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def _variables(container: Obj, path: str, spec: Obj) -> Flaws:
    for index, variable in enumerate(parts(container, "env")):
        at, name = f"{path}.env[{index}]", text(variable, "name")
        if not name:
            yield required(f"{at}.name")
        else:
            yield from each(f"{at}.name", name, names.env_name(name))
        if isinstance(variable.get("valueFrom"), dict):
            yield from _value_from(variable, f"{at}.valueFrom", spec)
    for index, source in enumerate(parts(container, "envFrom")):
        at, prefix = f"{path}.envFrom[{index}]", text(source, "prefix")
        if prefix:
            yield from each(f"{at}.prefix", prefix, names.env_name(prefix))
        given = [kind for kind in ("configMapRef", "secretRef") if isinstance(source.get(kind), dict)]
        if not given:
            yield invalid(f"{path}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid(f"{path}.envFrom", "", "may not have more than one field specified at a time")
        for kind in given:
            yield from _object_name(text(source, kind, "name"), f"{at}.{kind}.name")


def _object_name(name: str, path: str) -> Flaws:
    if not name:
        yield required(path)
    else:
        yield from each(path, name, names.subdomain(name))


def _value_from(variable: Obj, path: str, spec: Obj) -> Flaws:
    value = part(variable, "valueFrom")
    given = [kind for kind in _SOURCES if isinstance(value.get(kind), dict)]
    if not given:
        choices = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(path, "", f"must specify one of: {choices}")
    elif text(variable, "value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    for kind in given:
        found, at = part(value, kind), f"{path}.{kind}"
        if kind == "fieldRef":
            yield from field_reference(found, at, IN_VARIABLE)
        elif kind == "resourceFieldRef":
            yield from resource_reference(found, at, in_volume=False)
        elif kind == "fileKeyRef":
            yield from _file_key(found, at, spec)
        else:
            if not text(found, "name"):
                yield required(f"{at}.name")
            yield from _key(text(found, "key"), f"{at}.key")


def _key(key: str, path: str) -> Flaws:
    """Judge a key of a ConfigMap or Secret."""
    if not key:
        yield required(path)
    else:
        yield from each(path, key, names.config_key(key))


def _file_key(reference: Obj, path: str, spec: Obj) -> Flaws:
    volume, target = text(reference, "volumeName"), text(reference, "path")
    yield from _key(text(reference, "key"), f"{path}.key")
    if not volume:
        yield required(f"{path}.volumeName")
    elif volume not in sources(spec):
        yield not_found(f"{path}.volumeName", volume)
    elif sources(spec)[volume] != "emptyDir":
        yield invalid(f"{path}.volumeName", volume, "referenced volume must be of type emptyDir")
    if not target:
        yield required(f"{path}.path")
    yield from relative(target, f"{path}.path")


# Mounts


def _mounts(container: Obj, path: str, spec: Obj) -> Flaws:
    volumes = sources(spec)
    mounts, devices = parts(container, "volumeMounts"), parts(container, "volumeDevices")
    yield from _volume_mounts(container, path, volumes)
    names_taken: set[str] = set()
    paths_taken: set[str] = set()
    for index, device in enumerate(devices):
        at, name, place = f"{path}.volumeDevices[{index}]", text(device, "name"), text(device, "devicePath")
        if not name:
            yield required(f"{at}.name")
        elif name in names_taken:
            yield invalid(f"{at}.name", name, "must be unique")
        if name not in volumes:
            yield not_found(f"{at}.name", name)
        elif volumes[name] not in _BLOCK_SOURCES:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{at}.name", name, detail)
        if not place:
            yield required(f"{at}.devicePath")
        elif place in paths_taken:
            yield invalid(f"{at}.devicePath", place, "must be unique")
        yield from no_backsteps(place, f"{at}.devicePath")
        if any(text(mount, "name") == name for mount in mounts):
            yield invalid(f"{at}.name", name, "must not already exist in volumeMounts")
        if any(text(mount, "mountPath") == place for mount in mounts):
            yield invalid(f"{at}.devicePath", place, "must not already exist as a path in volumeMounts")
        names_taken.add(name)
        paths_taken.add(place)


def _volume_mounts(container: Obj, path: str, volumes: Mapping[str, str]) -> Flaws:
    privileged = part(container, "securityContext").get("privileged") is True
    taken: set[str] = set()
    for index, mount in enumerate(parts(container, "volumeMounts")):
        at, name, place = f"{path}.volumeMounts[{index}]", text(mount, "name"), text(mount, "mountPath")
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield not_found(f"{at}.name", name)
        if not place:
            yield required(f"{at}.mountPath")
        elif place in taken:
            yield invalid(f"{at}.mountPath", place, "must be unique")
        taken.add(place)
        for field in ("subPath", "subPathExpr"):
            yield from relative(text(mount, field), f"{path}.volumeMounts.{field}")
        if text(mount, "subPath") and text(mount, "subPathExpr"):
            yield invalid(
                f"{at}.subPathExpr", text(mount, "subPathExpr"), "subPathExpr and subPath are mutually exclusive"
            )
        propagation = mount.get("mountPropagation")
        if isinstance(propagation, str):
            if propagation not in _PROPAGATION:
                yield not_supported(f"{path}.volumeMounts.mountPropagation", propagation, _PROPAGATION)
            if propagation == "Bidirectional" and not privileged:
                detail = "Bidirectional mount propagation is available only to privileged containers"
                yield forbidden(f"{path}.volumeMounts.mountPropagation", detail)
        yield from _recursive(mount, f"{at}.recursiveReadOnly")


def _recursive(mount: Obj, path: str) -> Flaws:
    mode = mount.get("recursiveReadOnly")
    if not isinstance(mode, str):
        return
    if mode not in _RECURSIVE:
        yield not_supported(path, mode, _RECURSIVE)
    elif mode != "Disabled":
        if mount.get("readOnly") is not True:
            yield forbidden(path, "may only be specified when readOnly is true")
        if text(mount, "mountPropagation") not in ("", "None"):
            yield forbidden(path, "may only be specified when mountPropagation is None or not specified")


# Life


def _running(container: Obj, path: str, spec: Obj) -> Flaws:
    """Judge what only containers have that go on running: hooks and probes."""
    grace = number(spec, "terminationGracePeriodSeconds")
    grace = _GRACE_S if grace is None else grace
    for hook in ("postStart", "preStop"):
        lifecycle = part(container, "lifecycle")
        if isinstance(lifecycle.get(hook), dict):
            yield from handler(part(lifecycle, hook), f"{path}.lifecycle.{hook}", grace)
    for kind in PROBES:
        if isinstance(container.get(kind), dict):
            yield from probe(part(container, kind), f"{path}.{kind}", grace, kind)


def _not_running(container: Obj, path: str) -> Flaws:
    for field in ("lifecycle", *PROBES):
        if isinstance(container.get(field), dict):
            yield forbidden(f"{path}.{field}", "may not be set for init containers without restartPolicy=Always")


def _restart(container: Obj, path: str) -> Flaws:
    policy, rules = container.get("restartPolicy"), parts(container, "restartPolicyRules")
    if not isinstance(policy, str):
        if rules:
            yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy not in _RESTART:
        yield not_supported(f"{path}.restartPolicy", policy, _RESTART)
    if len(rules) > _MOST_RULES:
        yield invalid(f"{path}.restartPolicyRules", len(rules), f"must have at most {_MOST_RULES} items")
    for index, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{index}]"
        if text(rule, "action") not in ("Restart", "RestartAllContainers"):
            yield not_supported(f"{at}.action", text(rule, "action"), ("Restart", "RestartAllContainers"))
        codes: Any = rule.get("exitCodes")
        if not isinstance(codes, dict):
            yield required(f"{at}.exitCodes", "must be specified")
            continue
        if text(codes, "operator") not in ("In", "NotIn"):
            yield not_supported(f"{at}.exitCodes.operator", text(codes, "operator"), ("In", "NotIn"))
        if len(entries(codes, "values")) > _MOST_CODES:
            yield invalid(
                f"{at}.exitCodes.values", len(entries(codes, "values")), f"must have at most {_MOST_CODES} items"
            )


def _resizing(container: Obj, path: str, restart: str) -> Flaws:
    taken: set[str] = set()
    policies: Collection[str] = ("NotRequired", "RestartContainer")
    for index, policy in enumerate(parts(container, "resizePolicy")):
        resource, reaction = text(policy, "resourceName"), text(policy, "restartPolicy")
        if resource in taken:
            yield duplicate(f"{path}[{index}]", resource)
        taken.add(resource)
        if not resource:
            yield required(path)
        yield from one_of(path, resource, ("cpu", "memory"))
        if not reaction:
            yield required(path)
        yield from one_of(path, reaction, policies)
        if restart == "Never" and reaction != "NotRequired":
            yield invalid(path, reaction, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
