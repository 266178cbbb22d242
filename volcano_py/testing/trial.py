"""Try plugins on a small cluster: `python -m volcano_py.testing.trial --plugins-dir DIR [--scheduler-conf FILE]`.

The cluster has large and small nodes, two queues, gangs with roles, single pods, running pods, a pod without requests
and a job that does not fit, so that cycles use every extension point. The daemon runs the same trial, in a separate
process, before it uses new plugins, because a plugin that hangs or crashes would stop the scheduler. A trial that hangs
ends after a minute and prints where it hung.
"""

import argparse
import faulthandler
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from volcano_py.cache.cluster import ClusterCache
from volcano_py.conf.loader import parse_conf, read_conf
from volcano_py.conf.schema import ConfError
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.scheduler.third_party import PluginFolder, ThirdParty, load_plugins
from volcano_py.testing.cluster import a_cluster, flat, modified
from volcano_py.testing.objects import EPOCH, a_job, a_node, a_pod, a_queue
from volcano_py.testing.scenario import a_policy

SLOW_S: Final = 1.0
"""Limit on the time of one plugin on the small cluster for all answers to one question, in seconds."""

_HANGS_S: Final = 60.0

UNUSABLE: Final = 2
"""Exit code: the configuration or the folder cannot be used at all."""

_CYCLES: Final = 2
_BUILT_IN: Final = ("priority", "gang", "predicates", "nodeorder", "proportion")


def sample_cluster() -> ClusterCache:
    """Return the small cluster."""
    return a_cluster(
        *(a_node(f"large-{i}", cpu=32, memory="128Gi", labels={"zone": f"z{i % 2}"}) for i in range(2)),
        *(a_node(f"small-{i}", cpu=4, labels={"zone": f"z{i % 2}"}) for i in range(4)),
        a_node("tainted", cpu=16, taints=["only=gpu:NoSchedule"], gpu=4),
        a_job("gang", tasks={"ps": 1, "worker": 3}, cpu=2, memory="1Gi", queue="red", created=1),
        a_job("single", tasks=3, min_available=1, cpu=1, queue="blue", created=2),
        a_job("too-large", tasks=2, cpu=64, queue="blue", created=3),
        a_job("best-effort", tasks=1, queue="red", created=4),
        a_job("refused", tasks=2, cpu=1, queue="red", min_resources={"cpu": 500}, created=5),
        *(a_pod(f"running-{i}", cpu=2, node="small-0") for i in range(2)),
        queues=[a_queue(), a_queue("red", weight=3), a_queue("blue")],
    )


def try_out(policy: Policy) -> Iterator[str]:
    """Run a few cycles on the small cluster and yield each problem with a plugin once."""
    cache, memory = sample_cluster(), Memory()
    said: set[str] = set()
    for cycle in range(_CYCLES):
        clock = CycleClock(EPOCH.timestamp() + cycle, time.perf_counter)
        snapshot = cache.snapshot()
        memory, report = run_cycle(snapshot, policy, clock, cycle, memory, lambda _: None)
        slow = (
            f"plugin {plugin} took {seconds:.1f} s for {hook} on a cluster of {len(snapshot.nodes)} nodes: "
            f"more than {SLOW_S:g} s would delay every cycle; work on whole arrays"
            for (plugin, hook), seconds in report.plugin_seconds.items()
            if seconds > SLOW_S
        )
        for problem in (*report.failures, *slow):
            if problem not in said:
                said.add(problem)
                yield problem
        modified(cache, *flat([a_node("small-3", cpu=8)]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Load and try plugins; print one line per problem.

    Returns 0 without problems, 1 if a plugin does not work, 2 if the configuration or the folder cannot be used at all.
    """
    flags = _parser().parse_args(arguments)
    try:
        found = load_plugins(PluginFolder(Path(flags.plugins_dir)) if flags.plugins_dir else None)
        problems = list(try_out(_policy(flags.scheduler_conf, found)))
    except (ConfError, NotADirectoryError) as error:
        print(error)  # noqa: T201 - it is a command
        return UNUSABLE
    for problem in (*found.problems, *problems):
        print(problem)  # noqa: T201 - it is a command
    if not found.problems and not problems:
        for name, source in found.sources.items():
            print(f"{name}: works ({source})")  # noqa: T201 - it is a command
    return 1 if problems or (found.problems and not flags.scheduler_conf) else 0


def _policy(conf: str, found: ThirdParty) -> Policy:
    plugins = PLUGINS | found.plugins
    if not conf:
        return a_policy("enqueue, allocate, backfill", [_BUILT_IN, [*found.plugins.values()]])
    text = sys.stdin.read() if conf == "-" else read_conf(Path(conf))
    return resolve(parse_conf(text, conf), plugins)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m volcano_py.testing.trial", description="Try plugins.")
    parser.add_argument("--plugins-dir", metavar="DIR", default="", help="folder of plugin files")
    parser.add_argument(
        "--scheduler-conf",
        metavar="FILE",
        default="",
        help="the configuration to run, - for standard input (default: common plugins and all plugins of the folder)",
    )
    return parser


if __name__ == "__main__":
    faulthandler.dump_traceback_later(_HANGS_S, exit=True)
    sys.exit(main())
