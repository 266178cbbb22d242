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
from volcano_py.conf.loader import built_in_conf, load_conf
from volcano_py.conf.schema import ConfError
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.daemon.options import DEFAULT_HEALTH_ADDRESS, DEFAULT_METRICS_ADDRESS, DaemonOptions
from volcano_py.kube.credentials import CredentialsError, load_credentials
from volcano_py.runtime.http import AddressInUse
from volcano_py.runtime.logs import FORMATS, LEVELS, configure_logging
from volcano_py.runtime.options import OptionError, parse_duration, parse_listen_address
from volcano_py.runtime.signals import Shutdown, shutdown_on_signals
from volcano_py.runtime.supervisor import TaskFailed
from volcano_py.scheduler import Policy, resolve

log = structlog.get_logger()

T = TypeVar("T")

_MISUSED: Final = 2  # as argparse exits


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
        policy = _policy(flags.scheduler_conf)
    except ConfError as error:
        log.error("the configuration cannot be used", problem=str(error))
        return _MISUSED
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        code, forced = runner.run(_run(flags, policy))
    if forced:
        sys.stderr.flush()
        os._exit(code)  # a cycle that is under way would keep the process until it ends
    return code


async def _run(flags: argparse.Namespace, policy: Policy) -> tuple[int, bool]:
    """Return the exit code, and whether the end was forced."""
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown):
        try:
            credentials = await load_credentials(server=flags.master or None, kubeconfig=flags.kubeconfig or None)
            code = await SchedulerDaemon(credentials, policy, _options(flags), registry=_registry()).run(shutdown)
        except (CredentialsError, AddressInUse, OSError) as error:
            log.error("the scheduler cannot start", problem=str(error))
            return _MISUSED, False
        except TaskFailed as error:
            log.error("the scheduler ends because a part of it failed", problem=str(error))
            return 1, False
    return code, shutdown.force.is_set()


def _policy(path: str) -> Policy:
    conf = load_conf(Path(path)) if path else built_in_conf()
    policy = resolve(conf)
    for warning in (*conf.warnings, *policy.warnings):
        log.warning("configuration", file=conf.file, problem=warning)
    log.info("configuration", file=conf.file, actions=list(policy.action_names), missing=list(policy.missing))
    return policy


def _options(flags: argparse.Namespace) -> DaemonOptions:
    return DaemonOptions(
        scheduler_name=flags.scheduler_name[-1].rpartition(",")[2] if flags.scheduler_name else keys.SCHEDULER_NAME,
        default_queue=flags.default_queue,
        seed=flags.seed,
        period_s=flags.schedule_period,
        metrics_address=flags.listen_address if flags.enable_metrics else None,
        health_address=flags.healthz_address if flags.enable_healthz else None,
        freeze_garbage=True,
    )


def _check(flags: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    names = [name for text in flags.scheduler_name or () for name in text.split(",")]
    if len(set(names)) > 1:
        raise OptionError(f"--scheduler-name: one name is served, not {', '.join(names)}: run a scheduler for each")
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


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop when it is installed: it makes binds 1.6 times faster."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


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
    add("--seed", type=int, default=0, help="chooses among nodes of equal score (default: %(default)s)")
    add("--log-level", choices=LEVELS, default="info", help="default: %(default)s")
    add("--log-format", choices=FORMATS, default="console", help="default: %(default)s")
    return parser


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
