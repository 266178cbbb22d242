"""Try plugins on a small cluster: `python -m volcano_py.testing.trial --plugins-dir DIR [--scheduler-conf FILE]`.

The cluster has large, small and busy nodes, HyperNodes, queues that lend, gangs with roles and topologies, pods that
stay apart, running pods, jobs that starve, a job that does not fit, and rows that deleted objects have left free. So
cycles use every extension point. The daemon runs the same trial, in a separate process, before it uses new plugins,
because a plugin that hangs or crashes would stop the scheduler. A trial that hangs ends after a minute and prints where
it hung.
"""

import argparse
import faulthandler
import subprocess
import sys
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from volcano_py.api import keys
from volcano_py.cache.cluster import ClusterCache
from volcano_py.conf.loader import parse_conf, read_conf
from volcano_py.conf.schema import ConfError
from volcano_py.framework.contract import POINTS, Plugin
from volcano_py.framework.contract.failures import invalid
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.scheduler.third_party import PluginFolder, ThirdParty, load_plugins, unread_arguments
from volcano_py.testing.cluster import a_cluster, deleted, flat, modified
from volcano_py.testing.objects import EPOCH, Job, a_hyper_node, a_job, a_node, a_pod, a_priority_class, a_queue
from volcano_py.testing.scenario import PluginEntry, a_policy
from volcano_py.testing.stuck import watch

SLOW_S: Final = 1.0
"""Limit on the time of one plugin on the small cluster for all answers to one question, in seconds."""

_HANGS_S: Final = 60.0

UNUSABLE: Final = 2
"""Exit code: there is nothing to try, or the configuration or the folder cannot be used at all."""

COMPLETE: Final = "the trial is complete"
"""The last line. Without it, a plugin has ended the process."""

ALONE: Final = "--alone"
"""Flag: run in this very process. Whoever gives it looks for `COMPLETE` himself."""

LIMIT: Final = "--limit"
"""Flag: after how many seconds the trial hangs, and says where."""

_CYCLES: Final = 2
BUILT_IN: Final = ("priority", "gang", "predicates", "nodeorder", "proportion", "network-topology-aware")
ACTIONS: Final = (
    "enqueue, allocate, backfill, preempt, reclaim",
    "enqueue, allocate, gangpreempt, gangreclaim, shuffle",
)
"""What a trial without a configuration runs: all actions, in two turns, because both evict the same pods."""

_SELECTS: Final = {"nodeSelector": {"pool": "busy"}}
_APART: Final = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": keys.LABEL_HOSTNAME}
            ]
        }
    }
}


def sample_cluster() -> ClusterCache:
    """Return the small cluster."""
    busy = {"pool": "busy"}
    gone = (a_node("gone"), a_job("gone", tasks=2, cpu=1, queue="red"))  # they leave free rows, as in any real cluster
    cache = a_cluster(
        *gone,
        *(a_node(f"large-{i}", cpu=32, memory="128Gi", labels={"zone": f"z{i % 2}"}) for i in range(2)),
        *(a_node(f"small-{i}", cpu=4, labels={"zone": f"z{i % 2}"}) for i in range(4)),
        *(a_node(f"busy-{i}", cpu=4, labels=busy) for i in range(4)),
        a_node("tainted", cpu=16, taints=["only=gpu:NoSchedule"], gpu=4),
        a_hyper_node("leaf-0", nodes=["large-0", "small-0", "small-2"]),
        a_hyper_node("leaf-1", nodes=["large-1", "small-1", "small-3"]),
        a_hyper_node("leaf-2", nodes=["busy-0", "busy-1"]),
        a_hyper_node("leaf-3", nodes=["busy-2", "busy-3"]),
        a_hyper_node("spine", tier=2, children=["leaf-0", "leaf-1", "leaf-2", "leaf-3"]),
        a_priority_class("urgent", 1000),
        a_job("gang", tasks={"ps": 1, "worker": 3}, cpu=2, memory="1Gi", queue="red", created=1),
        a_job("single", tasks=3, min_available=1, cpu=1, queue="red", created=2),
        a_job("too-large", tasks=2, cpu=64, queue="red", created=3),
        a_job("best-effort", tasks=1, queue="red", created=4),
        a_job("enqueued", tasks=2, cpu=1, queue="red", min_resources={"cpu": 2}, created=5),
        a_job("refused", tasks=2, cpu=1, queue="red", min_resources={"cpu": 500}, created=6),
        a_job("elsewhere", namespace="other", cpu=1, queue="red", created=7),
        a_job("near", tasks=3, cpu=1, queue="red", group_spec=_within("hard", 1), created=8),
        a_job("nearly", tasks=3, cpu=1, queue="red", group_spec=_within("soft", 2), created=9),
        a_job("apart", tasks=2, cpu=1, queue="red", labels={"app": "apart"}, spec=_APART, created=10),
        *(_running(f"low-{i}", "red", f"busy-{i}") for i in (0, 2)),
        *(_running(f"lent-{queue}", queue, f"busy-{i}") for i, queue in ((1, "blue"), (3, "white"))),
        a_job(
            "starving", tasks=2, cpu=2, queue="red", priority_class="urgent", priority=1000, spec=_SELECTS, created=11
        ),
        a_job(
            "starving-near",
            tasks=2,
            cpu=2,
            queue="red",
            priority_class="urgent",
            priority=1000,
            spec=_SELECTS,
            group_spec=_within("hard", 1),
            created=12,
        ),
        a_job("reclaiming", tasks=1, cpu=2, queue="green", spec=_SELECTS, created=13),
        *(a_pod(f"running-{i}", cpu=2, node="small-0") for i in range(2)),
        a_pod("without-group", group="absent", cpu=1),
        queues=[a_queue(), a_queue("red", weight=30), a_queue("blue"), a_queue("white"), a_queue("green", weight=3)],
    )
    deleted(cache, *gone)
    return cache


def _within(mode: str, tier: int) -> dict[str, object]:
    return {"networkTopology": {"mode": mode, "highestTierAllowed": tier}}


def _running(name: str, queue: str, node: str) -> Job:
    """Return a job that runs on a node and may be evicted; it has one pod more than its minimum."""
    notes, phase = {keys.PREEMPTABLE: "true"}, keys.PHASE_RUNNING
    return a_job(name, tasks=2, min_available=1, cpu=2, queue=queue, node=node, phase=phase, annotations=notes)


@dataclass(slots=True)
class Tried:
    """What a trial has found."""

    problems: dict[tuple[str, str], str] = field(default_factory=dict)  # by plugin and method
    asked: set[tuple[str, str]] = field(default_factory=set)  # plugin and method

    def not_asked(self, plugin: type[Plugin]) -> list[str]:
        """Return the questions that a plugin answers and that nobody asked."""
        questions = (
            name for point in POINTS if issubclass(plugin, point) for name in sorted(point.__abstractmethods__)
        )
        return [name for name in dict.fromkeys(questions) if (plugin.name, name) not in self.asked]


def try_out(*policies: Policy) -> Tried:
    """Run a few cycles of each policy on the small cluster."""
    found = Tried()
    for policy in policies:
        classes = {chosen.plugin.name: chosen.plugin for tier in policy.tiers for chosen in tier}
        cache, memory = sample_cluster(), Memory()
        for cycle in range(_CYCLES):
            clock = CycleClock(EPOCH.timestamp() + cycle, time.perf_counter)
            snapshot = cache.snapshot()
            memory, report = run_cycle(snapshot, policy, clock, cycle, memory, lambda _: None)
            slow = (
                ((plugin, hook), _too_slow(classes[plugin], hook, seconds, len(snapshot.nodes)))
                for (plugin, hook), seconds in report.plugin_seconds.items()
                if seconds > SLOW_S
            )
            for asked, problem in (*report.problems.items(), *slow):
                found.problems.setdefault(asked, problem)
            found.asked |= report.plugin_seconds.keys()
            modified(cache, *flat([a_node("small-3", cpu=8)]))
    return found


def _too_slow(plugin: type[Plugin], method: str, seconds: float, n_nodes: int) -> str:
    text = (
        f"it took {seconds:.1f} s on a cluster of {n_nodes} nodes: "
        f"more than {SLOW_S:g} s would delay every cycle; work on whole arrays"
    )
    return str(invalid(plugin, method, text))


def main(arguments: Sequence[str] | None = None) -> int:
    """Load and try plugins; print one line per problem, or one per plugin, and at last `COMPLETE` with `ALONE`.

    Returns 0 without problems, 1 if a plugin does not work, 2 if there is nothing to try: no plugin, or a configuration
    or a folder that cannot be used at all.
    """
    flags = _parser().parse_args(arguments)
    code = _main(flags.plugins_dir, flags.scheduler_conf)
    if flags.alone:
        _say(COMPLETE)
    return code


def _main(plugins_dir: str, conf: str) -> int:
    try:
        found = load_plugins(PluginFolder(Path(plugins_dir)) if plugins_dir else None)
        if not found.plugins and not found.problems:
            raise NotADirectoryError(f"no plugins found: {plugins_dir or 'no package'} has none (docs/plugins.md)")
        policies = _policies(conf, found)
        tried = try_out(*policies)
    except (ConfError, NotADirectoryError) as error:
        _say(str(error))
        return UNUSABLE
    _say(*found.problems, *tried.problems.values())
    if not found.problems and not tried.problems:
        named = {chosen.plugin.name for policy in policies for tier in policy.tiers for chosen in tier}
        _say(*(_success(name, found, tried, named) for name in found.plugins))
    return 1 if tried.problems or (found.problems and not conf) else 0


def _say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201 - it is a command


def _success(name: str, found: ThirdParty, tried: Tried, named: Container[str]) -> str:
    if name not in named:
        return f"{name}: not tried: the configuration does not name it ({found.sources[name]})"
    plugin = found.plugins[name]
    left, unread = tried.not_asked(plugin), unread_arguments(plugin)
    asked = f"; not asked: {', '.join(left)}" if left else ""
    return f"{name}: works ({found.sources[name]}){asked}{f'; warning: {unread}' if unread else ''}"


def tier_with(*plugins: type[Plugin]) -> list[PluginEntry]:
    """Return a tier of common plugins and these, which answer every question that they can."""
    return [*BUILT_IN, *({"name": plugin, "enableNamespaceOrder": True} for plugin in plugins)]


def _policies(conf: str, found: ThirdParty) -> list[Policy]:
    plugins = PLUGINS | found.plugins
    if not conf:
        tier = tier_with(*found.plugins.values())
        return [a_policy(actions, [tier]) for actions in ACTIONS]
    text = sys.stdin.read() if conf == "-" else read_conf(Path(conf))
    return [resolve(parse_conf(text, conf), plugins)]


def supervised(arguments: Sequence[str]) -> int:
    """Run the trial in a process of its own, which a plugin may end in the middle; return its exit code.

    Help and wrong arguments need none: argparse ends this process.
    """
    _parser().parse_args(arguments)
    command = [sys.executable, "-m", "volcano_py.testing.trial", ALONE, LIMIT, str(_HANGS_S), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace", check=False)
    lines = done.stdout.splitlines()
    _say(*(line for line in lines if line != COMPLETE))
    if COMPLETE in lines:
        return done.returncode
    _say(f"the trial was not completed: a plugin ended its process with code {done.returncode}, or hung")
    return done.returncode or 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m volcano_py.testing.trial", description="Try plugins.")
    parser.add_argument("--plugins-dir", metavar="DIR", default="", help="folder of plugin files")
    parser.add_argument(
        "--scheduler-conf",
        metavar="FILE",
        default="",
        help="the configuration to run, - for standard input (default: common plugins and all plugins of the folder)",
    )
    parser.add_argument(ALONE, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(LIMIT, type=float, default=_HANGS_S, help=argparse.SUPPRESS)
    return parser


def _alone() -> int:
    """Run the trial in this process, and name the line at which a plugin hangs or ends the process."""
    flags = _parser().parse_args()
    faulthandler.enable()
    faulthandler.dump_traceback_later(flags.limit + 2, exit=True)  # if a plugin keeps all other threads waiting
    watch(flags.plugins_dir, flags.limit, COMPLETE)
    return main()


if __name__ == "__main__":
    if ALONE in sys.argv:
        sys.exit(_alone())
    sys.exit(supervised(sys.argv[1:]))
