"""The `vc-scheduler` command: its flags, and the options that they set."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from volcano_py.api import keys
from volcano_py.cli.check_conf import check
from volcano_py.cli.feature_gates import SCHEDULER_FEATURES, read_feature_gates
from volcano_py.cli.flags import (
    SWITCH,
    ProgramParser,
    add_connection,
    add_election,
    add_feature_gates,
    add_operation,
    flag,
    lease_of,
    parse_name,
)
from volcano_py.cli.process import MISUSED, begin, process_registry, run
from volcano_py.cli.volcano_flags import add_volcano_flags, ignored_flags, with_dashes
from volcano_py.conf.reload import ConfFile, built_in
from volcano_py.conf.schema import ConfError
from volcano_py.daemon.configuration import Configuration
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.daemon.options import DEFAULT_HEALTH_ADDRESS, DEFAULT_METRICS_ADDRESS, DaemonOptions, ShardOptions
from volcano_py.effects import pod_conditions
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.lease import LeaseOptions
from volcano_py.runtime.options import OptionError, parse_duration
from volcano_py.scheduler import run_cycle
from volcano_py.scheduler.third_party import PluginFolder

log = structlog.get_logger()

_VERIFY_EVERY = 100  # jobs
_NOT_SHARDED, _HARD, _SOFT = "none", "hard", "soft"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scheduler until a signal ends it; return the exit code."""
    parser = scheduler_parser()
    flags = parser.parse_args(with_dashes(sys.argv[1:] if arguments is None else arguments))
    try:
        features, gates = read_feature_gates(flags.feature_gates, SCHEDULER_FEATURES)
        ignored = [*ignored_flags(flags, os.environ), *gates]
        options = _options(flags, features)
    except OptionError as error:
        parser.error(str(error))
    begin(flags, ignored)
    if flags.check:
        return check(flags.scheduler_conf, flags.plugins_dir)
    try:
        configuration = _configuration(flags.scheduler_conf, flags.plugins_dir)
    except (ConfError, NotADirectoryError) as error:
        log.error("the configuration cannot be used", problem=str(error))
        return MISUSED

    def daemon(credentials: Credentials) -> SchedulerDaemon:
        registry = process_registry()
        return SchedulerDaemon(
            credentials,
            configuration.policy,
            options,
            registry=registry,
            configuration=configuration,
            cycle=partial(run_cycle, verify_every=_VERIFY_EVERY if flags.verify_cycles else 0),
        )

    return run(flags, daemon, configuration.read_again)


def _configuration(path: str, plugins: str) -> Configuration:
    folder = PluginFolder(Path(plugins)) if plugins else None
    return Configuration.of_file(ConfFile(Path(path)), folder) if path else Configuration(built_in())


def _options(flags: argparse.Namespace, features: Mapping[str, bool]) -> DaemonOptions:
    """Return the daemon's options; raise OptionError for flags that contradict each other."""
    names = [name for text in flags.scheduler_name or () for name in text.split(",")]
    if len(set(names)) > 1:
        raise OptionError(
            f"--scheduler-name: only one name is possible, not {', '.join(names)}: run a scheduler for each"
        )
    if flags.plugins_dir and not flags.scheduler_conf:
        raise OptionError(
            f"--plugins-dir={flags.plugins_dir}: the built-in configuration names no plugin of yours: "
            "--scheduler-conf is needed"
        )
    if flags.disable_default_scheduler_config and not flags.scheduler_conf:
        raise OptionError(
            "--disable-default-scheduler-config: without the built-in configuration, --scheduler-conf is needed"
        )
    return DaemonOptions(
        scheduler_name=names[0] if names else keys.SCHEDULER_NAME,
        default_queue=flags.default_queue,
        pod_conditions=replace(pod_conditions.DEFAULT_OPTIONS, only_unschedulable=flags.signal_autoscalers),
        queue_admission=features[keys.QUEUE_ADMISSION],
        ignored_provisioners=tuple(name for text in flags.ignored_provisioners for name in text.split(",") if name),
        seed=flags.seed,
        period_s=flags.schedule_period,
        metrics_address=flags.listen_address if flags.enable_metrics else None,
        health_address=flags.healthz_address if flags.enable_healthz else None,
        remote_debug=flags.enable_remote_debug,
        freeze_garbage=True,
        shard=_shard(flags),
        lease=lease_of(flags),
    )


def _shard(flags: argparse.Namespace) -> ShardOptions | None:
    if flags.scheduler_sharding_mode == _NOT_SHARDED:
        return None
    if not flags.scheduler_sharding_name:
        raise OptionError("--scheduler-sharding-name: the NodeShard of this scheduler must have a name")
    return ShardOptions(flags.scheduler_sharding_name, strict=flags.scheduler_sharding_mode == _HARD)


def scheduler_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = ProgramParser(
        prog="vc-scheduler",
        description="A batch scheduler for Kubernetes.",
        epilog="Volcano's other flags are accepted with a warning, or refused with advice: see docs/flags.md.",
        allow_abbrev=False,
    )
    add_volcano_flags(parser)
    add: Any = parser.add_argument
    add_connection(add)
    add(
        "--scheduler-name",
        type=flag(parse_name),
        action="append",
        metavar="NAME",
        help=f"schedule the pods with this spec.schedulerName (default: {keys.SCHEDULER_NAME})",
    )
    add("--scheduler-conf", default="", metavar="FILE", help="file with actions and plugins (default: as in Volcano)")
    add("--plugins-dir", default="", metavar="DIR", help="folder of plugins in Python, one file each")
    add(
        "--check",
        **SWITCH,
        default=False,
        help="check the file of --scheduler-conf and exit, without a cluster; exit code 0: no problem, 1: warnings, "
        "2: the file is refused",
    )
    add(
        "--disable-default-scheduler-config",
        **SWITCH,
        default=False,
        help="do not start without --scheduler-conf (default: false)",
    )
    add(
        "--schedule-period",
        type=flag(_period),
        default=1.0,
        metavar="DURATION",
        help="longest time between two cycles while pods or jobs wait (default: 1s)",
    )
    add(
        "--default-queue",
        type=flag(parse_name),
        default=keys.DEFAULT_QUEUE,
        metavar="NAME",
        help="queue of PodGroups that name none (default: %(default)s)",
    )
    add(
        "--enable-remote-debug",
        **SWITCH,
        default=False,
        help="serve /debug/conf and /debug/jobs to other machines, too (default: false)",
    )
    add(
        "--ignored-provisioners",
        action="append",
        default=[],
        metavar="NAMES",
        help="CSI drivers whose volumes do not count towards the limits of nodes (default: none)",
    )
    add(
        "--signal-autoscalers",
        **SWITCH,
        default=False,
        help="give waiting pods of gangs the reason Unschedulable, not Schedulable, even if there is room for them, "
        "so that cluster autoscalers add nodes for whole gangs (default: false)",
    )
    add(
        "--seed",
        type=int,
        default=0,
        help="decides between nodes of equal score: 0 takes the first name, another number shuffles the names "
        "(default: %(default)s)",
    )
    add(
        "--verify-cycles",
        **SWITCH,
        default=False,
        help="look for faults of the scheduler: each cycle recomputes stored results of a few jobs (default: false)",
    )
    add(
        "--scheduler-sharding-mode",
        choices=[_NOT_SHARDED, _HARD, _SOFT],
        default=_NOT_SHARDED,
        help="divide nodes among schedulers: hard uses only the nodes of the NodeShard, soft prefers them "
        "(default: %(default)s)",
    )
    add(
        "--scheduler-sharding-name",
        default=keys.SCHEDULER_NAME,
        metavar="NAME",
        help="NodeShard that lists the nodes of this scheduler (default: %(default)s)",
    )
    add_feature_gates(add, SCHEDULER_FEATURES)
    add_election(add, LeaseOptions(), "schedule")
    add_operation(add, DEFAULT_METRICS_ADDRESS, DEFAULT_HEALTH_ADDRESS)
    return parser


def _period(text: str) -> float:
    seconds = parse_duration(text)
    if seconds <= 0:
        raise OptionError(f"{text!r} is not a period: it must be longer than 0")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
