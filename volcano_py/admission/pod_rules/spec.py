"""The fields of a pod as a whole: names, deadlines, policies, DNS, gates, claims."""

import ipaddress
from typing import Final

from volcano_py.admission import names
from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import (
    Flaws,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
    within,
)
from volcano_py.admission.pod_rules.resources import overhead
from volcano_py.admission.reading import number, part, parts, text, texts

_LARGEST: Final = 2**31 - 1
_MOST_NAMESERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_LONGEST_SEARCHES: Final = 2048


def pod_fields(spec: Obj, path: str) -> Flaws:
    """Judge the fields that no other module judges."""
    restart = text(spec, "restartPolicy")
    yield from one_of(f"{path}.restartPolicy", restart, ("Always", "Never", "OnFailure"))
    dns = text(spec, "dnsPolicy")
    yield from one_of(f"{path}.dnsPolicy", dns, ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"))
    yield from _dns(spec, f"{path}.dnsConfig", dns)
    yield from _names(spec, path)
    yield from within(f"{path}.activeDeadlineSeconds", number(spec, "activeDeadlineSeconds"), 1, _LARGEST)
    preemption = spec.get("preemptionPolicy")
    if isinstance(preemption, str) and preemption not in ("Never", "PreemptLowerPriority"):
        yield not_supported(f"{path}.preemptionPolicy", preemption, ("Never", "PreemptLowerPriority"))
    yield from overhead(part(spec, "overhead"), f"{path}.overhead")
    yield from _gates(spec, path)
    for index, alias in enumerate(parts(spec, "hostAliases")):
        at = f"{path}.hostAliases[{index}]"
        yield from _address(text(alias, "ip"), f"{at}.ip")
        for number_, host in enumerate(texts(alias, "hostnames")):
            yield from each(f"{at}.hostnames[{number_}]", host, names.subdomain(host))
    if isinstance(spec.get("os"), dict):
        if not text(spec, "os", "name"):
            yield required(f"{path}.os.name")
        yield from one_of(f"{path}.os", text(spec, "os", "name"), ("linux", "windows"))


def _names(spec: Obj, path: str) -> Flaws:
    for field in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        if name := text(spec, field):
            yield from each(f"{path}.{field}", name, names.subdomain(name))
    for field in ("hostname", "subdomain"):
        if name := text(spec, field):
            yield from each(f"{path}.{field}", name, names.label(name))
    override = spec.get("hostnameOverride")
    if isinstance(override, str):
        at = f"{path}.hostnameOverride"
        if spec.get("setHostnameAsFQDN") is True:
            yield forbidden(at, "may not be specified when setHostnameAsFQDN is true")
        if spec.get("hostNetwork") is True:
            yield forbidden(at, "may not be specified when hostNetwork is true")
        if len(override) > 64:
            yield invalid(at, override, "may not be more than 64 bytes")
        yield from each(at, override, names.subdomain(override))


def _gates(spec: Obj, path: str) -> Flaws:
    for index, gate in enumerate(parts(spec, "readinessGates")):
        name = text(gate, "conditionType")
        yield from each(f"{path}.readinessGates[{index}].conditionType", name, names.qualified(name))
    taken: set[str] = set()
    for index, gate in enumerate(parts(spec, "schedulingGates")):
        at, name = f"{path}.schedulingGates[{index}]", text(gate, "name")
        yield from each(at, name, names.qualified(name))
        if name in taken:
            yield duplicate(at, name)
        taken.add(name)
    if taken and text(spec, "nodeName"):
        yield forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")


def _dns(spec: Obj, path: str, policy: str) -> Flaws:
    config = part(spec, "dnsConfig")
    servers, searches = texts(config, "nameservers"), texts(config, "searches")
    if policy == "None":
        if not isinstance(spec.get("dnsConfig"), dict):
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not servers:
            yield required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
    if len(servers) > _MOST_NAMESERVERS:
        yield invalid(f"{path}.nameservers", servers, f"must not have more than {_MOST_NAMESERVERS} nameservers")
    for index, server in enumerate(servers):
        yield from _address(server, f"{path}.nameservers[{index}]")
    if len(searches) > _MOST_SEARCHES:
        yield invalid(f"{path}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _LONGEST_SEARCHES:
        detail = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield invalid(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            yield from each(f"{path}.searches[{index}]", search, names.search_path(search.removesuffix(".")))
    for index, option in enumerate(parts(config, "options")):
        if not text(option, "name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def _address(address: str, path: str) -> Flaws:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        yield invalid(path, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def resource_claims(spec: Obj, path: str) -> Flaws:
    """Judge the claims of devices that the containers of a pod may use."""
    taken: set[str] = set()
    for index, claim in enumerate(parts(spec, "resourceClaims")):
        at, name = f"{path}[{index}]", text(claim, "name")
        if not name:
            yield required(f"{at}.name")
        elif name in taken:
            yield duplicate(f"{at}.name", name)
        else:
            yield from each(f"{at}.name", name, names.label(name))
        taken.add(name)
        given = [
            kind for kind in ("resourceClaimName", "resourceClaimTemplateName") if isinstance(claim.get(kind), str)
        ]
        if len(given) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(at, name, detail)
        if not given:
            yield invalid(at, name, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for kind in given:
            yield from each(f"{at}.{kind}", text(claim, kind), names.subdomain(text(claim, kind)))
