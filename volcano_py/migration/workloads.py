"""Checks Volcano's Deployments and DaemonSets: flags, variables, replicas, pod settings, and what runs beside them."""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from volcano_py.admission.paths import WEBHOOKS as PATHS
from volcano_py.api.keys import SCHEDULER_NAME
from volcano_py.controllers.options import chosen_controllers
from volcano_py.migration.findings import Finding, Group, Ref, mapping, shortened
from volcano_py.migration.helm_defaults import (
    ADMISSION_PATHS,
    ANY,
    CONTROLLERS_OFF,
    FEATURES,
    FLAGS,
    VARIABLES,
    VERSION,
)
from volcano_py.migration.pod_settings import pod_settings, written
from volcano_py.migration.programs import (
    AGENT,
    AGENT_SCHEDULER,
    CONTROLLERS,
    DEFAULT_RELEASE,
    HYPER_NODES,
    SCHEDULER,
    WEBHOOKS,
    Given,
    Workload,
    image_version,
    releases_of,
)
from volcano_py.runtime.options import OptionError, parse_duration


class Effect(Enum):
    """What our program of the same name does with a flag."""

    WORKS = "works"
    NONE = "none"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Verdict(NamedTuple):
    """What our program says about a flag or variable."""

    effect: Effect
    why: str = ""


Judge = Callable[[str, Given], Verdict]
"""Takes a program and a flag; a flag that begins with ``$`` is a variable."""

_OUR_CONTROLLER: Final = "hyperNode-controller"
_HIDDEN_VARIABLES: Final = ("SCHEDULER_POD_NAME", "SCHEDULER_NUM")
_MULTI: Final = "MULTI_SCHEDULER_ENABLE"
_VARIABLES: Final = (_MULTI, "BATCH_BIND_NUM", "PANIC_ON_ERROR")
_CARRY: Final = "our manifests do not set it: add it to the arguments of our Deployment"
_LEASE_NAMESPACE: Final = "leader-elect-resource-namespace"
_OUR_NAMESPACE: Final = "volcano-system"
_OUR_REPLICAS: Final = {SCHEDULER: 1, CONTROLLERS: 1, WEBHOOKS: 2}


def judge_workload(workload: Workload, judge: Judge) -> Iterator[Finding]:
    """Yield what differs when ours takes the place of a workload of Volcano."""
    ref = workload.ref
    if workload.program in _OTHERS:
        group, rule, what, advice = _OTHERS[workload.program]
        yield Finding(group, rule, ref, what, advice)
        return
    yield from _version(workload)
    yield from _flags(workload, judge)
    yield from _variables(workload, judge)
    yield from _replicas(workload)
    yield from pod_settings(workload)
    yield from _selector(workload)


_OTHERS: Final = {
    AGENT_SCHEDULER: (
        Group.MISSING,
        "agent-scheduler",
        "the agent scheduler does not exist here",
        "let Volcano's program run on; it shares nodes through NodeShards",
    ),
    AGENT: (
        Group.MISSING,
        "agent",
        "the node agent (colocation, oversubscription) does not exist here",
        "let Volcano's agent run on: our scheduler counts the amounts that it writes on nodes",
    ),
    HYPER_NODES: (
        Group.DIFFERS,
        "hypernode-controller",
        "our controllers find HyperNodes themselves, so two programs would write the same objects",
        "stop this Deployment, or start ours with --controllers=*,-hyperNode-controller",
    ),
}


def _version(workload: Workload) -> Iterator[Finding]:
    if workload.program not in workload.image and not any(workload.program in word for word in workload.command):
        what = f"image {shortened(workload.image)} is not named like Volcano's: what else it does is not known here"
        yield Finding(Group.DIFFERS, "image", workload.ref, what, "find out how it differs from Volcano's program")
    version = image_version(workload.image)
    if version is None or version == VERSION:
        return
    known = ".".join(map(str, VERSION))
    age = "older" if version < VERSION else "newer"
    yield Finding(
        Group.DIFFERS,
        "version",
        workload.ref,
        f"image {shortened(workload.image)} is {age} than Volcano {known}, with which this check compares",
        f"read Volcano's changes between the two versions, too; behaviour here is that of {known}",
    )


def _flags(workload: Workload, judge: Judge) -> Iterator[Finding]:
    ref, defaults = workload.ref, FLAGS[workload.program]
    yield from _scheduler_names(workload)
    yield from _controllers(workload)
    yield from _paths(workload)
    yield from _features(workload, judge)
    yield from _sharding(workload)
    special = {"feature-gates", "controllers", "enabled-admission"}
    for given in workload.flags:
        if given.name in special or _is_default(defaults.get(given.name), given.value):
            continue
        if given.name == _LEASE_NAMESPACE and given.value in (ref.namespace, _OUR_NAMESPACE):
            continue
        if given.name == "plugins-dir":
            what = f"{given}: compiled plugins of Volcano (.so) cannot be loaded here"
            yield Finding(Group.MISSING, "plugins-dir", ref, what, "write them in Python: docs/plugins.md says how")
            continue
        verdict = judge(workload.program, given)
        if given.name == "scheduler-name" and verdict.effect is Effect.WORKS and len(set(_names(workload))) > 1:
            continue
        yield _about_flag(ref, given, verdict)


def _about_flag(ref: Ref, given: Given, verdict: Verdict) -> Finding:
    shown = shortened(given)
    if verdict.effect is Effect.REFUSED:
        return Finding(Group.BLOCKS, "flag-refused", ref, f"{shown} is refused here", verdict.why)
    if verdict.effect is Effect.NONE:
        return Finding(Group.DIFFERS, "flag-without-effect", ref, f"{shown} has no effect here", verdict.why)
    if verdict.effect is Effect.UNKNOWN:
        what = f"{shown}: our program does not know this flag, and would not start with it"
        return Finding(Group.DIFFERS, "flag-unknown", ref, what, "leave it out; find out what it was for")
    return Finding(Group.REPLACED, "flag-set", ref, f"{shown} is set", _CARRY)


def _is_default(known: frozenset[str] | None, value: str) -> bool:
    if known is None:
        return False
    return known is ANY or "$(" in value or value in known or _seconds(value) in {_seconds(one) for one in known}


def _seconds(value: str) -> float | str:
    try:
        return parse_duration(value)
    except OptionError:
        return value


def _names(workload: Workload) -> list[str]:
    return [name for value in workload.values("scheduler-name") for name in value.split(",")]


def _scheduler_names(workload: Workload) -> Iterator[Finding]:
    names = sorted(set(_names(workload)))
    if workload.program == SCHEDULER and len(names) > 1:
        what = f"one scheduler serves the names {', '.join(names)}; here each scheduler serves one"
        yield Finding(
            Group.BLOCKS, "several-scheduler-names", workload.ref, what, "run one Deployment of ours for each name"
        )
    elif workload.program != SCHEDULER and len(names) > 1:
        what = f"--scheduler-name is given for {', '.join(names)}"
        yield Finding(Group.REPLACED, "flag-set", workload.ref, what, _CARRY)


def _controllers(workload: Workload) -> Iterator[Finding]:
    lists = workload.values("controllers")
    if workload.program != CONTROLLERS or not lists:
        return
    written = ",".join(lists)
    try:
        chosen = chosen_controllers(written)
    except OptionError as error:
        yield Finding(Group.BLOCKS, "flag-refused", workload.ref, f"--controllers={written} is refused", str(error))
        return
    entries = [entry.strip() for entry in written.split(",")]
    for name in chosen.missing:
        what = f"{name} runs, and does not exist here"
        advice = f"let Volcano's program run it beside ours: --controllers={name}, with a Lease of its own"
        yield Finding(Group.MISSING, "controller-missing", workload.ref, what, advice)
    off = [name for entry in entries if (name := entry.removeprefix("-")) != entry]
    left_out = [name for name in off if name not in (CONTROLLERS_OFF, "colocation-config-controller")]
    if left_out or "*" not in entries:
        what = f"--controllers={written} leaves controllers out"
        if _OUR_CONTROLLER in left_out and len(left_out) == 1 and "*" in entries:
            what = f"--controllers={written}: another program is meant to find HyperNodes"
        yield Finding(Group.REPLACED, "controllers-left-out", workload.ref, what, _CARRY)


def _paths(workload: Workload) -> Iterator[Finding]:
    lists = workload.values("enabled-admission")
    if workload.program != WEBHOOKS or not lists:
        return
    given = {path.strip() for path in lists[-1].split(",") if path.strip()}
    for path in sorted(given - set(PATHS)):
        what = f"--enabled-admission names {path}, which our webhook manager does not serve"
        yield Finding(Group.MISSING, "webhook-missing", workload.ref, what, "leave the path out")
    if lacking := sorted(set(ADMISSION_PATHS) - given):
        what = f"--enabled-admission leaves out {', '.join(lacking)}; our manifests serve them"
        yield Finding(
            Group.REPLACED,
            "admission-paths",
            workload.ref,
            what,
            "set the same flag, and leave their webhook configurations out",
        )


def _features(workload: Workload, judge: Judge) -> Iterator[Finding]:
    asked: dict[str, str] = {}
    for part in ",".join(workload.values("feature-gates")).split(","):
        name, equals, value = part.strip().partition("=")
        if equals:
            asked[name.strip()] = value.strip().lower()
    for name, value in asked.items():
        if FEATURES.get(name) == (value in {"true", "t", "1"}) and name in FEATURES:
            continue
        given = Given("feature-gates", f"{name}={value}")
        yield _about_flag(workload.ref, given, judge(workload.program, given))


def _sharding(workload: Workload) -> Iterator[Finding]:
    if workload.program != CONTROLLERS or not workload.values("scheduler-configs"):
        return
    what = "--scheduler-configs divides nodes among schedulers; the controller that does this does not exist here"
    yield Finding(
        Group.MISSING, "sharding", workload.ref, what, "write NodeShards by hand, or let Volcano's program run it"
    )


def _variables(workload: Workload, judge: Judge) -> Iterator[Finding]:
    for name in sorted(set(workload.variables) - {*VARIABLES, *_VARIABLES, ""}):
        what = f"${name} is set"
        yield Finding(Group.REPLACED, "variable-set", workload.ref, what, "add it to our Deployment, if it is needed")
    if workload.program != SCHEDULER:
        return
    for name in _VARIABLES:
        value = workload.variables.get(name, "")
        if not value:
            continue
        verdict = judge(workload.program, Given(f"${name}", value))
        if verdict.effect is not Effect.WORKS:
            group = Group.BLOCKS if verdict.effect is Effect.REFUSED else Group.DIFFERS
            word = "is refused here" if group is Group.BLOCKS else "has no effect here"
            rule = "variable-refused" if group is Group.BLOCKS else "variable-without-effect"
            yield Finding(group, rule, workload.ref, f"${name}={shortened(value)} {word}", verdict.why)


def _replicas(workload: Workload) -> Iterator[Finding]:
    if workload.replicas == 0:
        what = "it has 0 replicas, so it does nothing at present; our manifests start ours"
        yield Finding(Group.DIFFERS, "stopped", workload.ref, what, "leave our Deployment out to keep it so")
    if mapping(workload.obj, "spec").get("paused") is True:
        what = "it is paused: if ours overwrites it, no pod of ours starts"
        advice = "delete it first, as docs/migration.md says, or run kubectl rollout resume"
        yield Finding(Group.DIFFERS, "paused", workload.ref, what, advice)
    if workload.program == SCHEDULER and workload.replicas > 1 and not workload.elects:
        multi = workload.variables.get(_MULTI, "").lower() in {"true", "1", "t"}
        if not multi:
            what = f"{workload.replicas} replicas act at once, without leader election; here only one acts"
            yield Finding(
                Group.DIFFERS,
                "replicas-without-lease",
                workload.ref,
                what,
                "nothing to do: our replicas elect a leader",
            )
        return
    if workload.replicas > _OUR_REPLICAS[workload.program]:
        what = f"{workload.replicas} replicas are set"
        advice = "install ours with manifests/overlays/high-availability, or set the same number"
        yield Finding(Group.REPLACED, "replicas", workload.ref, what, advice)


_OUR_SELECTORS: Final = {
    SCHEDULER: ("volcano-scheduler", {"app": "volcano-scheduler"}),
    CONTROLLERS: ("volcano-controllers", {"app": "volcano-controller"}),
    WEBHOOKS: ("volcano-admission", {"app": "volcano-admission"}),
}


def _selector(workload: Workload) -> Iterator[Finding]:
    name, labels = _OUR_SELECTORS[workload.program]
    found = mapping(workload.obj, "spec", "selector", "matchLabels")
    if workload.ref.name == name and workload.ref.kind == "Deployment" and found and found != labels:
        what = f"its selector is {written(found)}; ours is {written(labels)}, and a selector cannot be changed"
        yield Finding(
            Group.BLOCKS,
            "selector",
            workload.ref,
            what,
            f"delete the Deployment before you apply ours ({_DELETE} {name})",
        )


_DELETE: Final = "kubectl delete deployment"


def judge_together(workloads: Sequence[Workload]) -> Iterator[Finding]:
    """Yield what follows from several workloads of one program."""
    schedulers = [one for one in workloads if one.program == SCHEDULER]
    # Ours takes the place of the one with the usual name.
    usual = sorted(
        schedulers, key=lambda one: (bool(set(_names(one)) - {SCHEDULER_NAME}), one.ref.namespace != _OUR_NAMESPACE)
    )
    for one in usual[1:]:
        names = ", ".join(_names(one)) or "volcano"
        what = f"this is one of {len(schedulers)} schedulers (its pods name {names}); our manifests install one"
        yield Finding(
            Group.REPLACED, "several-schedulers", one.ref, what, "add a Deployment of ours with its --scheduler-name"
        )
    for program in (CONTROLLERS, WEBHOOKS):
        several = [one for one in workloads if one.program == program]
        usual = sorted(several, key=lambda one: (one.ref.namespace != _OUR_NAMESPACE, one.ref.name))
        for one in usual[1:]:
            what = f"this is one of {len(several)} Deployments of {program}; our manifests install one"
            advice = "stop it together with the other one: two of them act on the same objects"
            yield Finding(Group.REPLACED, "several-programs", one.ref, what, advice)


def judge_absent(workloads: Sequence[Workload]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield the programs that our manifests install although Volcano's do not run."""
    programs = {one.program for one in workloads}
    for program in (SCHEDULER, CONTROLLERS):
        if programs and program not in programs:
            ref = Ref("Deployment", _OUR_SELECTORS[program][0])
            what = f"no {program} of Volcano runs in the cluster; our manifests install ours"
            yield ref, [Finding(Group.DIFFERS, "program-absent", ref, what, "leave its Deployment out to keep it so")]


def notes_about(workloads: Sequence[Workload]) -> Iterator[str]:
    """Yield what to know before the switch, whatever the settings."""
    elsewhere = sorted({one.ref.namespace for one in workloads} - {"volcano-system"})
    renamed = sorted(releases_of(workloads) - {DEFAULT_RELEASE})
    if elsewhere or renamed:
        named = ", ".join(renamed) or DEFAULT_RELEASE
        yield (
            f"Volcano is installed as {named} in {', '.join(elsewhere) or 'volcano-system'}; our manifests install "
            "into volcano-system, with names that begin with volcano: delete Volcano's Deployments by their own names"
        )
    acting = [one for one in workloads if one.program in (SCHEDULER, CONTROLLERS) and one.replicas]
    for one in acting:
        if not one.elects:
            yield (
                f"{one.ref} runs without leader election, so it acts beside ours if both run: "
                "delete it first, as docs/migration.md says"
            )
        else:
            default = "volcano" if one.program == SCHEDULER else "vc-controller-manager"
            name = one.value("leader-elect-resource-name", default)
            namespace = one.value(_LEASE_NAMESPACE, _OUR_NAMESPACE)
            same = (namespace, name) == (_OUR_NAMESPACE, default)
            shared = "ours takes the same one" if same else "ours takes another one unless you give it this"
            yield f"{one.ref} elects its leader with the Lease {namespace}/{name}; {shared}"
