"""The `vc-scheduler` command: flags, log set-up, exit codes."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import prometheus_client
import structlog
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

import volcano_py
from volcano_py.api import keys
from volcano_py.cli.volcano_flags import add_volcano_flags, left_aside, parse_boolean, with_dashes
from volcano_py.conf.reload import ConfFile, built_in
from volcano_py.conf.schema import ConfError
from volcano_py.daemon.configuration import Configuration
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.daemon.options import DEFAULT_HEALTH_ADDRESS, DEFAULT_METRICS_ADDRESS, DaemonOptions
from volcano_py.kube.credentials import Credentials, CredentialsError, load_credentials
from volcano_py.kube.lease import LeaseOptions
from volcano_py.runtime.http import AddressInUse
from volcano_py.runtime.logs import FORMATS, LEVELS, configure_logging
from volcano_py.runtime.loop import loop_factory
from volcano_py.runtime.options import OptionError, format_duration, parse_duration, parse_listen_address
from volcano_py.runtime.signals import Shutdown, shutdown_on_signals
from volcano_py.runtime.supervisor import TaskFailed
from volcano_py.scheduler.third_party import PluginFolder

log = structlog.get_logger()

T = TypeVar("T")

_MISUSED: Final = 2  # as argparse exits
_LOCK: Final = "leases"
_LEASE: Final = LeaseOptions()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scheduler until it is told to end; return the exit code."""
    parser = scheduler_parser()
    flags = parser.parse_args(with_dashes(sys.argv[1:] if arguments is None else arguments))
    try:
        warnings = left_aside(flags, os.environ)
        _check(flags)
    except OptionError as error:
        parser.error(str(error))
    configure_logging(flags.log_level, flags.log_format)
    for warning in warnings:
        log.warning("a flag of Volcano has no meaning here", flag=warning)
    # A creation time per series is of no use and doubles the output.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations
    try:
        configuration = _configuration(flags.scheduler_conf, flags.plugins_dir)
    except (ConfError, NotADirectoryError) as error:
        log.error("the configuration cannot be used", problem=str(error))
        return _MISUSED
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        code, at_once = runner.run(_run(flags, configuration))
    if at_once:
        sys.stderr.flush()
        os._exit(code)  # a cycle that is under way would keep the process until it ends
    return code


async def _run(flags: argparse.Namespace, configuration: Configuration) -> tuple[int, bool]:
    """Return the exit code, and whether to end at once: forced to, or because the lease is lost."""
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown):
        try:
            credentials = await load_credentials(server=flags.master or None, kubeconfig=flags.kubeconfig or None)
            code = await _daemon(flags, credentials, configuration).run(shutdown)
        except (CredentialsError, AddressInUse, OSError) as error:
            log.error("the scheduler cannot start", problem=str(error))
            return _MISUSED, False
        except TaskFailed as error:
            log.error("the scheduler ends because a part of it failed", problem=str(error))
            return 1, False
    return code, code != 0


def _daemon(flags: argparse.Namespace, credentials: Credentials, configuration: Configuration) -> SchedulerDaemon:
    return SchedulerDaemon(
        credentials, configuration.policy, _options(flags), registry=_registry(), configuration=configuration
    )


def _configuration(path: str, plugins: str) -> Configuration:
    folder = PluginFolder(Path(plugins)) if plugins else None
    return Configuration.of_file(ConfFile(Path(path)), folder) if path else Configuration(built_in())


def _options(flags: argparse.Namespace) -> DaemonOptions:
    return DaemonOptions(
        scheduler_name=flags.scheduler_name[-1].rpartition(",")[2] if flags.scheduler_name else keys.SCHEDULER_NAME,
        default_queue=flags.default_queue,
        seed=flags.seed,
        period_s=flags.schedule_period,
        metrics_address=flags.listen_address if flags.enable_metrics else None,
        health_address=flags.healthz_address if flags.enable_healthz else None,
        freeze_garbage=True,
        lease=_lease(flags) if flags.leader_elect else None,
    )


def _lease(flags: argparse.Namespace) -> LeaseOptions:
    return LeaseOptions(
        name=flags.leader_elect_resource_name,
        namespace=flags.leader_elect_resource_namespace,
        duration_s=flags.leader_elect_lease_duration,
        renew_deadline_s=flags.leader_elect_renew_deadline,
        retry_period_s=flags.leader_elect_retry_period,
    )


def _check(flags: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    names = [name for text in flags.scheduler_name or () for name in text.split(",")]
    if len(set(names)) > 1:
        raise OptionError(f"--scheduler-name: one name is served, not {', '.join(names)}: run a scheduler for each")
    if flags.leader_elect and (problem := _lease(flags).problem()):
        raise OptionError(f"--leader-elect-*: {problem}")
    if flags.leader_elect and flags.leader_elect_resource_lock != _LOCK:
        raise OptionError(
            f"--leader-elect-resource-lock={flags.leader_elect_resource_lock}: the election is over a Lease: "
            f"write {_LOCK} or leave it out"
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


def _registry() -> CollectorRegistry:
    """Return a registry with what Prometheus expects of every process."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector):
        collector(registry=registry)
    return registry


def scheduler_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="vc-scheduler",
        description="A batch scheduler for Kubernetes.",
        epilog="Volcano's other flags are accepted with a warning, or refused with the way out: see docs/flags.md.",
        allow_abbrev=False,
    )
    add_volcano_flags(parser)
    add: Any = parser.add_argument
    add("--version", action="version", version=f"volcano_py {volcano_py.__version__}")
    add(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="how to reach the API server (default: as kubectl, or as a pod)",
    )
    add("--master", default="", metavar="URL", help="address of the API server; replaces the one of the kubeconfig")
    add(
        "--scheduler-name",
        action="append",
        metavar="NAME",
        help=f"pods that name it are ours (default: {keys.SCHEDULER_NAME})",
    )
    add("--scheduler-conf", default="", metavar="FILE", help="actions and plugins (default: Volcano's built-in ones)")
    add("--plugins-dir", default="", metavar="DIR", help="folder of plugins in Python, one file each")
    switch: dict[str, Any] = {"nargs": "?", "const": True, "type": _flag(parse_boolean), "metavar": "true|false"}
    add(
        "--disable-default-scheduler-config",
        **switch,
        default=False,
        help="do not start without --scheduler-conf (default: false)",
    )
    add(
        "--schedule-period",
        type=_flag(_period),
        default=1.0,
        metavar="DURATION",
        help="longest time between cycles while something is pending (default: 1s)",
    )
    add("--default-queue", default=keys.DEFAULT_QUEUE, help="queue of PodGroups that name none (default: %(default)s)")
    add(
        "--listen-address",
        type=_flag(parse_listen_address),
        default=DEFAULT_METRICS_ADDRESS,
        metavar="HOST:PORT",
        help="where metrics are served (default: %(default)s)",
    )
    add(
        "--healthz-address",
        type=_flag(parse_listen_address),
        default=DEFAULT_HEALTH_ADDRESS,
        metavar="HOST:PORT",
        help="where /healthz and /readyz are served (default: %(default)s)",
    )
    add("--enable-metrics", **switch, default=True, help="serve metrics (default: true)")
    add("--enable-healthz", **switch, default=True, help="serve /healthz and /readyz (default: true)")
    _add_election(add, switch)
    add("--seed", type=int, default=0, help="chooses among nodes of equal score (default: %(default)s)")
    add("--log-level", choices=LEVELS, default="info", help="default: %(default)s")
    add("--log-format", choices=FORMATS, default="console", help="default: %(default)s")
    return parser


def _add_election(add: Any, switch: dict[str, Any]) -> None:
    add(
        "--leader-elect",
        **switch,
        default=True,
        help="schedule only while holding a lease, so that several replicas may run (default: true)",
    )
    durations = {
        "--leader-elect-lease-duration": (_LEASE.duration_s, "how long others wait for a leader that is silent"),
        "--leader-elect-renew-deadline": (_LEASE.renew_deadline_s, "how long the leader tries to renew the lease"),
        "--leader-elect-retry-period": (_LEASE.retry_period_s, "time between two attempts"),
    }
    for name, (default, meaning) in durations.items():
        text = f"{meaning} (default: {format_duration(default)})"
        add(name, type=_flag(parse_duration), default=default, metavar="DURATION", help=text)
    add("--leader-elect-resource-lock", default=_LOCK, help="kind of lock; there is only %(default)s")
    add("--leader-elect-resource-name", default=_LEASE.name, metavar="NAME", help="of the lease (default: %(default)s)")
    add(
        "--leader-elect-resource-namespace",
        default=_LEASE.namespace,
        metavar="NAMESPACE",
        help="of the lease (default: %(default)s)",
    )


def _period(text: str) -> float:
    seconds = parse_duration(text)
    if seconds <= 0:
        raise OptionError(f"{text!r} is no period: it must be longer than 0")
    return seconds


def _flag(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a parser whose error argparse shows as it is."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except OptionError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed


if __name__ == "__main__":
    sys.exit(main())
