"""Security contexts of pods and containers, and the namespaces of the host."""

import re
from typing import Any, Final

from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import (
    Flaws,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
    within,
)
from volcano_py.admission.pod_rules.volumes import relative
from volcano_py.admission.reading import entries, number, part, parts, text, texts

_LARGEST_ID: Final = 2**31 - 1
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?", re.ASCII)
_LONGEST_SYSCTL: Final = 253


def pod_security(spec: Obj, path: str) -> Flaws:
    """Judge the security context of a pod, and what of the host it shares."""
    context, at = part(spec, "securityContext"), f"{path}.securityContext"
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from within(f"{at}.{field}", number(context, field), 0, _LARGEST_ID)
    for index, group in enumerate(entries(context, "supplementalGroups")):
        if isinstance(group, int):
            yield from within(f"{at}.supplementalGroups[{index}]", group, 0, _LARGEST_ID)
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID") is True:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{at}.shareProcessNamespace", True, detail)
    yield from _sysctls(context, f"{at}.sysctls", spec)
    yield from _choice(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), at)
    yield from _choice(context, "supplementalGroupsPolicy", ("Merge", "Strict"), at)
    yield from _choice(context, "seLinuxChangePolicy", ("MountOption", "Recursive"), at)
    yield from _profiles(context, at)
    if spec.get("hostUsers") is False:
        for field, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC"), ("hostNetwork", "hostNetwork")):
            if spec.get(field) is True:
                yield forbidden(f"{path}.{shown}", "when `hostUsers` is false")
        for field in ("containers", "initContainers"):
            for index, container in enumerate(parts(spec, field)):
                if entries(container, "volumeDevices"):
                    yield forbidden(f"{path}.{field}[{index}].volumeDevices", "when `hostUsers` is false")


def container_security(context: Obj, path: str, spec: Obj) -> Flaws:
    """Judge the security context of a container."""
    for field in ("runAsUser", "runAsGroup"):
        yield from within(f"{path}.{field}", number(context, field), 0, _LARGEST_ID)
    mount = context.get("procMount")
    if isinstance(mount, str):
        if mount not in ("Default", "Unmasked"):
            yield not_supported(f"{path}.procMount", mount, ("Default", "Unmasked"))
        elif mount == "Unmasked" and spec.get("hostUsers") is not False:
            yield invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged") is True:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, False, detail)
        if "CAP_SYS_ADMIN" in texts(context, "capabilities", "add"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(path, False, detail)
    yield from _profiles(context, path)


def _profiles(context: Obj, path: str) -> Flaws:
    for kind in ("seccompProfile", "appArmorProfile"):
        profile: Any = context.get(kind)
        if not isinstance(profile, dict):
            continue
        at, name = f"{path}.{kind}", profile.get("localhostProfile")
        if text(profile, "type") not in _PROFILES:
            if text(profile, "type"):
                yield not_supported(f"{at}.type", text(profile, "type"), _PROFILES)
            else:
                yield required(f"{at}.type", "type is required")
        elif text(profile, "type") == "Localhost":
            if not isinstance(name, str) or not name.strip():
                yield required(f"{at}.localhostProfile", "must be set when profile type is Localhost")
            elif kind == "seccompProfile":
                yield from relative(name, f"{at}.localhostProfile")
            elif name != name.strip():
                yield invalid(f"{at}.localhostProfile", name, "must not be padded with whitespace")
        elif isinstance(name, str):
            detail = f"can only be set when profile type is Localhost, not {text(profile, 'type')}"
            yield invalid(f"{at}.localhostProfile", name, detail)


def _sysctls(context: Obj, path: str, spec: Obj) -> Flaws:
    taken: set[str] = set()
    for index, one in enumerate(parts(context, "sysctls")):
        at, name = f"{path}[{index}].name", text(one, "name")
        if not name:
            yield required(at)
        elif len(name) > _LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield invalid(at, name, f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL.pattern}")
        elif name in taken:
            yield duplicate(at, name)
        taken.add(name)
        plain = name.replace("/", ".")
        if spec.get("hostNetwork") is True and plain.startswith("net."):
            yield invalid(at, name, "may not be specified when 'hostNetwork' is true")
        if spec.get("hostIPC") is True and (
            plain.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")) or plain == "kernel.sem"
        ):
            yield invalid(at, name, "may not be specified when 'hostIPC' is true")


def _choice(context: Obj, field: str, allowed: tuple[str, ...], path: str) -> Flaws:
    value = context.get(field)
    if isinstance(value, str):
        if value:
            yield from one_of(f"{path}.{field}", value, allowed)
        else:
            yield not_supported(f"{path}.{field}", value, allowed)
