"""Random configurations of the scheduler: actions, tiers of plugins, switches, arguments."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.equal_decisions.draw import FPGA, GPU, ZONES, Draw, Json

ACTIONS = {
    "enqueue": 0.75,
    "allocate": 0.98,
    "backfill": 0.6,
    "preempt": 0.5,
    "reclaim": 0.5,
    "gangpreempt": 0.27,
    "gangreclaim": 0.27,
    "shuffle": 0.35,
}
"""How often each action is there, in the usual order."""

PLUGINS = {
    "priority": 0.75,
    "gang": 0.9,
    "conformance": 0.4,
    "sla": 0.25,
    "tdm": 0.25,
    "cdp": 0.25,
    "pdb": 0.35,
    "overcommit": 0.35,
    "resourcequota": 0.25,
    "drf": 0.5,
    "predicates": 0.9,
    "nodegroup": 0.2,
    "usage": 0.25,
    "nodeorder": 0.75,
    "binpack": 0.35,
    "resource-strategy-fit": 0.25,
    "task-topology": 0.25,
    "network-topology-aware": 0.2,
    "rescheduling": 0.25,
    "proportion": 0.0,
    "capacity": 0.0,
}
"""How often each plugin is there, in the usual order; who divides among queues is drawn apart."""

SWITCHES = (
    *("enableJobOrder", "enableTaskOrder", "enableQueueOrder", "enableJobEnqueued", "enableJobReady"),
    *("enableJobPipelined", "enabledOverused", "enabledAllocatable", "enablePredicate", "enableNodeOrder"),
    *("enableJobStarving", "enablePreemptable", "enableReclaimable", "enabledVictim", "enablePreemptive"),
)


@dataclass(frozen=True, slots=True)
class Conf:
    """A configuration, and what others need to know of it."""

    text: str
    actions: tuple[str, ...]
    plugins: frozenset[str]
    tree: bool  # capacity with a hierarchy of queues
    drf_tree: bool
    zones: tuple[str, ...]  # revocable zones of tdm that have a window


def a_conf(draw: Draw) -> Conf:
    """Draw a configuration."""
    actions = [name for name, often in ACTIONS.items() if draw.chance(often)] or ["allocate"]
    if draw.chance(0.2):
        draw.shuffle(actions)
    chosen = [name for name, often in PLUGINS.items() if draw.chance(often)]
    dividers = {("proportion",): 0.37, ("capacity",): 0.48, ("proportion", "capacity"): 0.03, (): 0.12}
    chosen += draw.weighted(dividers)
    if "rescheduling" in chosen and "shuffle" not in actions:
        actions.append("shuffle")
    tree = "capacity" in chosen and draw.chance(0.55)
    drf_tree = "drf" in chosen and "proportion" not in chosen and draw.chance(0.35)
    zones = tuple(draw.some(ZONES, 1, 2)) if "tdm" in chosen else ()
    if draw.chance(0.06):
        chosen.append(
            draw.choice(("faulty", "faulty", "numaaware"))
        )  # one that raises, and one that does not exist here yet
    entries = {name: _entry(draw, name, zones) for name in chosen}
    if draw.chance(0.1):
        strange = {"weight": "many", "sla-waiting-time": 5, "overcommit-factor": "two", "tdm.revocable-zone.z9": "late"}
        entries[draw.choice(chosen)].setdefault("arguments", {}).update(strange)
    for name, on in (("capacity", tree), ("drf", drf_tree), ("nodegroup", tree and draw.chance(0.7))):
        if on and name in entries:
            entries[name]["enableHierarchy"] = True
    if "drf" in entries and draw.chance(0.3):
        entries["drf"]["enableNamespaceOrder"] = True
    configurations = [
        {"name": name, "arguments": arguments}
        for name, make in _ACTION_ARGUMENTS.items()
        if name in actions and draw.chance(0.5) and (arguments := make(draw))
    ]
    text = _written(draw, actions, _tiers(draw, chosen), entries, configurations)
    return Conf(text, tuple(actions), frozenset(chosen), tree, drf_tree, zones)


def _entry(draw: Draw, name: str, zones: tuple[str, ...]) -> Json:
    entry: Json = {"name": name}
    for switch in SWITCHES:
        if draw.chance(0.03):
            entry[switch] = draw.chance(0.2)
    if draw.chance(0.15):
        entry[draw.choice(("enablePreemptable", "enableReclaimable"))] = False
    if name == "tdm":
        entry["arguments"] = _tdm(draw, zones)
    elif name in _ARGUMENTS and draw.chance(0.7):
        entry["arguments"] = _ARGUMENTS[name](draw)
    return entry


def _tiers(draw: Draw, chosen: list[str]) -> list[list[str]]:
    """Divide plugins into tiers: mostly votes first and nodes second, sometimes any way."""
    n_tiers = draw.weighted({1: 0.25, 2: 0.55, 3: 0.2})
    tiers: list[list[str]] = [[] for _ in range(n_tiers)]
    usual = draw.chance(0.6)
    order = list(chosen)
    if not usual:
        draw.shuffle(order)
    for name in order:
        first = name in ("priority", "gang", "conformance", "sla", "tdm", "cdp")
        tier = (0 if first else n_tiers - 1) if usual and draw.chance(0.8) else draw.randrange(n_tiers)
        tiers[tier].append(name)
    return [tier for tier in tiers if tier]


def _written(
    draw: Draw, actions: list[str], tiers: list[list[str]], entries: dict[str, Json], configurations: list[Json]
) -> str:
    lines = [f'actions: "{draw.choice((", ", ",")).join(actions)}"', "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        for name in tier:
            lines += [
                f"  {'-' if key == 'name' else ' '} {key}: {json.dumps(value)}" for key, value in entries[name].items()
            ]
    if configurations:
        lines += ["configurations:", *(f"- {json.dumps(one)}" for one in configurations)]
    return "\n".join(lines) + "\n"


# Arguments


def _weights(*keys: str) -> Callable[[Draw], Json]:
    def make(draw: Draw) -> Json:
        return {key: draw.weighted({0: 2, 1: 3, 2: 2, 5: 2, 10: 1, -1: 0.5}) for key in draw.some(keys, 1)}

    return make


def _binpack(draw: Draw) -> Json:
    arguments = _weights("binpack.weight", "binpack.cpu", "binpack.memory")(draw)
    if draw.chance(0.5):
        arguments["binpack.resources"] = f"{GPU}, {FPGA}"
        arguments[f"binpack.resources.{GPU}"] = draw.randint(1, 8)
    return arguments


def _predicates(draw: Draw) -> Json:
    names = ("NodeAffinity", "TaintToleration", "NodePorts", "PodAffinity", "PodTopologySpread")
    return {f"predicate.{name}Enable": draw.chance(0.8) for name in draw.some(names, 0, 2)}


def _rescheduling(draw: Draw) -> Json:
    low, high = draw.randint(20, 60), draw.randint(40, 80)
    params = {"thresholds": {"cpu": low, "memory": low + 10}, "targetThresholds": {"cpu": high, "memory": high}}
    strategies = [{"name": "lowNodeUtilization", "params": params}]
    return {"interval": draw.choice(("1s", "20s", "2m")), "strategies": strategies}


def _strategy_fit(draw: Draw) -> Json:
    kinds = ("LeastAllocated", "MostAllocated")
    resources = {
        name: {"type": draw.choice(kinds), "weight": draw.randint(1, 4)}
        for name in draw.some(("cpu", "memory", GPU, "example.com/*"), 1)
    }
    arguments: Json = {"resourceStrategyFitWeight": draw.choice((0, 1, 10)), "resources": resources}
    if draw.chance(0.6):
        weights = {GPU: draw.randint(1, 4)}
        arguments["sra"] = {"enable": True, "resources": f"{GPU}, {FPGA}", "weight": 5, "resourceWeight": weights}
    if draw.chance(0.6):
        shares = {f"{GPU}.cpu": draw.choice((0.5, 1, 2)), f"{GPU}.memory": draw.choice((0.5, 1))}
        arguments["proportional"] = {"enable": True, "resources": GPU, "resourceProportion": shares}
    return arguments


def _tdm(draw: Draw, zones: tuple[str, ...]) -> Json:
    windows = {f"tdm.revocable-zone.{zone}": _window(draw) for zone in zones}
    return windows | {"tdm.evict.period": draw.choice(("1s", "30s", "1m"))}


def _window(draw: Draw) -> str:
    """Return a window that begins or ends around noon, when cycles run, or is open or closed all the time."""
    near = f"{draw.choice((11, 12, 13))}:{draw.choice((0, 5, 30)):02}"
    return draw.choice((f"{near}-20:00", f"08:00-{near}", f"22:00-{near}", "08:00-20:00", "22:00-06:00"))


def _usage(draw: Draw) -> Json:
    arguments = _weights("usage.weight", "cpu.weight", "memory.weight")(draw)
    arguments["thresholds"] = {"cpu": draw.choice((40, 60, 80)), "mem": draw.choice((40, 60, 80))}
    if draw.chance(0.6):
        ratios = {"request_ratio": draw.choice((0.3, 0.7)), "risk_threshold": draw.choice((0.2, 0.6))}
        arguments["estimator"] = ratios | {"be_cpu": draw.choice((100, 500)), "be_mem": "512Mi", "risk_factor": 2.0}
    return arguments


_ARGUMENTS: dict[str, Callable[[Draw], Json]] = {
    "binpack": _binpack,
    "capacity": lambda draw: {"ancestorReclaimLevel": draw.choice((0, 1, 2))},
    "nodegroup": lambda draw: {"strict": draw.chance(0.5), "enablePreferredOrder": draw.chance(0.5)},
    "nodeorder": _weights(
        *("leastrequested.weight", "mostrequested.weight", "balancedresource.weight", "nodeaffinity.weight"),
        *("tainttoleration.weight", "imagelocality.weight", "podaffinity.weight", "podtopologyspread.weight"),
    ),
    "overcommit": lambda draw: {"overcommit-factor": draw.choice((0.5, 1.0, 1.1, 1.5, 3.0))},
    "predicates": _predicates,
    "rescheduling": _rescheduling,
    "resource-strategy-fit": _strategy_fit,
    "sla": lambda draw: {"sla-waiting-time": draw.choice(("10s", "2m", "1h"))},
    "task-topology": _weights("task-topology.weight"),
    "usage": _usage,
}


def _whole(draw: Draw) -> dict[str, Any]:
    return {"allowWholeBundle": draw.chance(0.5), "maxDomains": 4}


def _preempt(draw: Draw) -> dict[str, Any]:
    limits = {"minCandidateNodesPercentage": draw.choice((1, 30, 100)), "minCandidateNodesAbsolute": draw.randint(1, 5)}
    return {"enableTopologyAwarePreemption": draw.chance(0.7), **limits}


_ACTION_ARGUMENTS: dict[str, Callable[[Draw], Json]] = {
    "preempt": _preempt,
    "gangpreempt": _whole,
    "gangreclaim": _whole,
}
