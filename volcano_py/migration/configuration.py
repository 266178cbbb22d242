"""Checks the ConfigMaps of Volcano: those of the scheduler, the controllers, the webhooks and of sharding."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import yaml

from volcano_py.admission.options import read_groups
from volcano_py.conf.loader import parse_conf
from volcano_py.conf.schema import ConfError, SchedulerConf
from volcano_py.controllers.hypernode.configuration import KEY as CONTROLLER_KEY
from volcano_py.controllers.hypernode.configuration import LABEL_SOURCE, ConfigurationError, read, sources
from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, ref_of, sequence, shortened, text
from volcano_py.migration.helm_defaults import SCHEDULER_CONF
from volcano_py.migration.programs import CONTROLLERS, SCHEDULER, WEBHOOKS, Workload
from volcano_py.runtime.options import OptionError
from volcano_py.scheduler import resolve

SCHEDULER_KEY: Final = "volcano-scheduler.conf"
ADMISSION_KEY: Final = "volcano-admission.conf"
SHARDING_KEY: Final = "sharding.yaml"
SHARDING_NAME: Final = "volcano-sharding-configmap"
_DISCOVERY: Final = "networkTopologyDiscovery"
_SUFFIXES: Final = {
    "scheduler-configmap": SCHEDULER_KEY,
    "admission-configmap": ADMISSION_KEY,
    "controller-configmap": CONTROLLER_KEY,
    "sharding-configmap": SHARDING_KEY,
}
_FLAGS: Final = {SCHEDULER: ("scheduler-conf", SCHEDULER_KEY), WEBHOOKS: ("admission-conf", ADMISSION_KEY)}
"""By program, the flag that names the file with its configuration."""
_KEEP: Final = "save it, and apply it again after ours: docs/migration.md has the commands"

_Judges = Mapping[str, Callable[[Ref, str], Iterator[Finding]]]


@dataclass(frozen=True, slots=True)
class Source:
    """A key of a ConfigMap that a program of Volcano reads."""

    ref: Ref
    key: str
    kind: str
    """One of the keys above, which says how to read it."""
    content: str


def sources_of(workloads: list[Workload], config_maps: list[Obj]) -> Iterator[Source]:
    """Yield what the programs read: by their volumes and flags, else by the names that Volcano's chart gives."""
    by_name = {ref_of(one, "ConfigMap"): one for one in config_maps}
    namespaces = {one.ref.namespace for one in workloads}
    for ref, obj in sorted(by_name.items()):
        for kind, key in _wanted(ref, obj, workloads, namespaces):
            content = mapping(obj, "data").get(key)
            if isinstance(content, str):
                yield Source(ref, key, kind, content)


def judge_absent_sources(workloads: list[Workload], config_maps: list[Obj]) -> Iterator[Finding]:
    """Yield the programs whose configuration is not where their flag says: ours would not find it, either."""
    by_name = {ref_of(one, "ConfigMap"): one for one in config_maps}
    for workload in workloads:
        flag = _FLAGS.get(workload.program, ("", ""))[0]
        if not flag or not workload.value(flag):
            continue
        names = sorted(_mounted(workload))
        found = [by_name.get(Ref("ConfigMap", name, workload.ref.namespace)) for name in names]
        if not any(obj is not None and any(_read_by(workload, obj)) for obj in found):
            file = workload.value(flag).rpartition("/")[2]
            where = f"no ConfigMap that its pods mount ({', '.join(names) or 'none'}) has {file}"
            what = f"--{flag} names a file that cannot be looked at: {where}"
            advice = "find the file, and check what it says; our manifests mount a ConfigMap with the chart's default"
            yield Finding(Group.DIFFERS, "conf-elsewhere", workload.ref, what, advice)


def _wanted(ref: Ref, obj: Obj, workloads: list[Workload], namespaces: set[str]) -> Iterator[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    for workload in workloads:
        if workload.ref.namespace == ref.namespace and ref.name in _mounted(workload):
            found |= dict.fromkeys(_read_by(workload, obj))
    for suffix, key in _SUFFIXES.items():
        known = any(kind == key for kind, _ in found)
        if not known and ref.namespace in namespaces and ref.name.endswith(suffix) and key in mapping(obj, "data"):
            found[key, key] = None
    yield from found


def _mounted(workload: Workload) -> set[str]:
    return {text(volume, "configMap", "name") for volume in sequence(workload.pod, "volumes")} - {""}


def _read_by(workload: Workload, obj: Obj) -> Iterator[tuple[str, str]]:
    flag, kind = _FLAGS.get(workload.program, ("", ""))
    key = _key(workload, text(obj, "metadata", "name"), workload.value(flag).rpartition("/")[2]) if flag else ""
    if key and key in mapping(obj, "data"):
        yield kind, key


def _key(workload: Workload, name: str, file: str) -> str:
    """Return the key of a ConfigMap that is mounted as a file of this name."""
    for volume in sequence(workload.pod, "volumes"):
        if text(volume, "configMap", "name") == name:
            for item in sequence(volume, "configMap", "items"):
                if text(item, "path").rpartition("/")[2] == file:
                    return text(item, "key")
    return file


def judge_source(source: Source) -> Iterator[Finding]:
    """Yield what differs if our program reads a configuration of Volcano."""
    judges: _Judges = {
        SCHEDULER_KEY: _scheduler,
        ADMISSION_KEY: _admission,
        CONTROLLER_KEY: _controllers,
        SHARDING_KEY: _sharding,
    }
    yield from judges[source.kind](source.ref, source.content)


# The scheduler


def conf_of(content: str, file: str) -> SchedulerConf | None:
    """Return a configuration of the scheduler, None if it cannot be read."""
    try:
        return parse_conf(content, file)
    except ConfError:
        return None


def _scheduler(ref: Ref, content: str) -> Iterator[Finding]:
    if not content.strip():
        yield Finding(
            Group.BLOCKS,
            "conf-refused",
            ref,
            "the configuration is empty; our scheduler refuses it",
            "write one: conf/ has samples",
        )
        return
    try:
        conf = parse_conf(content, SCHEDULER_KEY)
    except ConfError as error:
        yield Finding(Group.BLOCKS, "conf-refused", ref, f"our scheduler refuses it: {error}", "correct this line")
        return
    found = [*_warned(ref, conf), *_names(ref, conf)]
    yield from found
    if not found and _plain(conf) != _helm_default():
        what = f"the configuration is not the default of Volcano's chart (actions: {', '.join(conf.actions)})"
        yield Finding(Group.REPLACED, "conf-replaced", ref, what, _KEEP)


def _names(ref: Ref, conf: SchedulerConf) -> Iterator[Finding]:
    """Yield what names of the configuration mean here; an unknown one ends the reading."""
    try:
        policy = resolve(conf)
    except ConfError as error:
        yield Finding(Group.BLOCKS, "conf-refused", ref, f"our scheduler refuses it: {error}", "correct this line")
        return
    for name in policy.missing:
        lines = (entry.where.line for tier in conf.tiers for entry in tier if name == f"plugin {entry.name}")
        what = f"line {next(lines, conf.actions_where.line)}: the {name} does not exist here; the others run"
        yield Finding(Group.MISSING, "plugin-missing", ref, what, _instead_of(name.rpartition(" ")[2]))
    for warning in policy.warnings:
        if "is missing here" not in warning:
            yield _of_warning(ref, warning)
    plugins = {entry.name for tier in conf.tiers for entry in tier}
    if "shuffle" in policy.action_names and "pdb" in plugins:
        what = "the action shuffle with the plugin pdb: here pdb only protects pods; in Volcano it names pods to evict"
        yield Finding(Group.DIFFERS, "shuffle-and-pdb", ref, what, "see docs/parity.md, row shuffle")


def _instead_of(plugin: str) -> str:
    return {
        "deviceshare": "pods that share devices need Volcano's scheduler: keep it for them, with a name of its own",
        "numaaware": "pods are placed without regard to NUMA nodes; keep Volcano's scheduler for those that need it",
        "numa-aware": "pods are placed without regard to NUMA nodes; keep Volcano's scheduler for those that need it",
        "extender": "write the policy as a plugin in Python: docs/plugins.md says how",
        "guaranteequota": "use the plugin capacity, which respects guarantees and capabilities",
    }.get(plugin, "remove it")


def _warned(ref: Ref, conf: SchedulerConf) -> Iterator[Finding]:
    for warning in conf.warnings:
        yield _of_warning(ref, warning)


def _of_warning(ref: Ref, warning: str) -> Finding:
    place, _, said = warning.removeprefix(f"{SCHEDULER_KEY}:").partition(": ")
    what = f"line {place}: {said}" if place.isdigit() else warning
    return Finding(
        Group.DIFFERS, "conf-ignored", ref, what, "remove it, or correct it; docs/parity.md has all differences"
    )


def _plain(conf: SchedulerConf) -> tuple[Any, ...]:
    tiers = [[(one.name, dict(one.flags), dict(one.arguments)) for one in tier] for tier in conf.tiers]
    return (
        list(conf.actions),
        tiers,
        [(one.name, dict(one.arguments)) for one in conf.configurations],
        dict(conf.metrics),
    )


@cache
def _helm_default() -> tuple[Any, ...]:
    return _plain(parse_conf(SCHEDULER_CONF, "default"))


# The other programs


def _admission(ref: Ref, content: str) -> Iterator[Finding]:
    try:
        groups = read_groups(content)
    except OptionError as error:
        yield Finding(
            Group.BLOCKS, "admission-conf", ref, f"our webhook manager refuses it: {error}", "correct the configuration"
        )
        return
    if groups:
        named = ", ".join(group.name or "without name" for group in groups)
        what = f"it has resource groups ({shortened(named)})"
        yield Finding(Group.REPLACED, "resource-groups", ref, what, f"{_KEEP}; they need the webhook /pods/mutate")


def _controllers(ref: Ref, content: str) -> Iterator[Finding]:
    try:
        document = read({CONTROLLER_KEY: content})
    except ConfigurationError as error:
        yield Finding(Group.DIFFERS, "controller-conf", ref, f"it cannot be read: {error}", "correct the configuration")
        return
    found = list(_discovery(ref, document))
    found += (
        Finding(Group.DIFFERS, "controller-conf", ref, problem, "correct the configuration")
        for problem in sources(document).problems
        if "is not supported" not in problem
    )
    if not found and sequence(document, _DISCOVERY):
        what = "it says how HyperNodes are found; ours is empty"
        found.append(Finding(Group.REPLACED, "discovery", ref, what, _KEEP))
    yield from found


def _discovery(ref: Ref, document: Mapping[str, Any]) -> Iterator[Finding]:
    for entry in sequence(document, _DISCOVERY):
        source = entry.get("source") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and entry.get("enabled") is True and source != LABEL_SOURCE:
            what = f"HyperNodes come from the source {source}, which does not exist here; those that exist stay"
            advice = "let Volcano's hypernode controller run on, or describe the network with labels of nodes"
            yield Finding(Group.MISSING, "discovery-source", ref, what, advice)


def _sharding(ref: Ref, content: str) -> Iterator[Finding]:
    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError:
        document = content
    if document:
        what = "it says how nodes are divided among schedulers; the controller that does this does not exist here"
        advice = "let Volcano's sharding controller run beside ours, or write NodeShards by hand"
        yield Finding(Group.MISSING, "sharding", ref, what, advice)


def plugins_of(sources_found: list[Source]) -> set[str]:
    """Return the plugins that the configurations of schedulers name."""
    confs = [conf_of(one.content, one.key) for one in sources_found if one.kind == SCHEDULER_KEY]
    return {entry.name for conf in confs if conf for tier in conf.tiers for entry in tier}


def controllers_with_sharding(workloads: list[Workload]) -> list[Workload]:
    """Return the controller managers that divide nodes among schedulers."""
    return [one for one in workloads if one.program == CONTROLLERS and "sharding-controller" in _asked(one)]


def _asked(workload: Workload) -> set[str]:
    return {name.strip().lstrip("+") for value in workload.values("controllers") for name in value.split(",")}
