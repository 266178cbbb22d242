"""The `vc-controller-manager` command: flags, log set-up, exit codes."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import prometheus_client
import structlog

import volcano_py
from volcano_py.api import keys
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import (
    CONTROLLERS,
    DEFAULT_HEALTH_ADDRESS,
    DEFAULT_METRICS_ADDRESS,
    ManagerOptions,
    chosen_controllers,
)
from volcano_py.kube.credentials import CredentialsError, load_credentials
from volcano_py.runtime.http import AddressInUse
from volcano_py.runtime.logs import FORMATS, LEVELS, configure_logging
from volcano_py.runtime.options import OptionError, parse_listen_address
from volcano_py.runtime.signals import Shutdown, shutdown_on_signals
from volcano_py.runtime.supervisor import TaskFailed

log = structlog.get_logger()

T = TypeVar("T")

_MISUSED: Final = 2  # as argparse exits


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controllers until told to end; return the exit code."""
    flags = _parser().parse_args(arguments)
    configure_logging(flags.log_level, flags.log_format)
    # A creation time per series is of no use and doubles the output.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations
    with asyncio.Runner() as runner:
        code, forced = runner.run(_run(flags))
    if forced:
        sys.stderr.flush()
        os._exit(code)
    return code


async def _run(flags: argparse.Namespace) -> tuple[int, bool]:
    """Return the exit code, and whether the end was forced."""
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown):
        try:
            credentials = await load_credentials(server=flags.master or None, kubeconfig=flags.kubeconfig or None)
            code = await ControllerManager(credentials, _options(flags)).run(shutdown)
        except (CredentialsError, AddressInUse, OSError) as error:
            log.error("the controllers cannot start", problem=str(error))
            return _MISUSED, False
        except TaskFailed as error:
            log.error("the controllers end because a part of them failed", problem=str(error))
            return 1, False
    return code, shutdown.force.is_set()


def _options(flags: argparse.Namespace) -> ManagerOptions:
    return ManagerOptions(
        controllers=flags.controllers,
        scheduler_names=tuple(flags.scheduler_name or (keys.SCHEDULER_NAME,)),
        default_queue=flags.default_queue,
        inherit_owner_annotations=flags.inherit_owner_annotations,
        rate_per_s=flags.kube_api_qps,
        burst=flags.kube_api_burst,
        podgroup_workers=flags.worker_threads_for_podgroup,
        queue_workers=flags.worker_threads_for_queue,
        attempts=flags.max_requeue_num,
        metrics_address=flags.listen_address,
        health_address=flags.healthz_address,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vc-controller-manager",
        description="The controllers of a batch system for Kubernetes.",
        allow_abbrev=False,
    )
    add: Any = parser.add_argument
    add("--version", action="version", version=f"volcano_py {volcano_py.__version__}")
    _add_connection(add)
    _add_behaviour(add)
    _add_operation(add)
    return parser


def _add_connection(add: Any) -> None:
    add(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="how to reach the API server (default: as kubectl, or as a pod)",
    )
    add("--master", default="", metavar="URL", help="address of the API server; replaces the one of the kubeconfig")
    add(
        "--kube-api-qps",
        type=_flag(_rate),
        default=50.0,
        metavar="NUMBER",
        help="writes per second altogether, in the long run (default: %(default)g)",
    )
    add(
        "--kube-api-burst",
        type=_flag(_count),
        default=100,
        metavar="NUMBER",
        help="writes that may go out at once after a pause (default: %(default)s)",
    )


def _add_behaviour(add: Any) -> None:
    add(
        "--controllers",
        type=_flag(chosen_controllers),
        default=frozenset(CONTROLLERS),
        metavar="LIST",
        help=f"which to run: *, or some of {', '.join(CONTROLLERS)}, each with - to leave it out (default: *)",
    )
    add(
        "--scheduler-name",
        action="append",
        metavar="NAME",
        help=f"pods that name it get PodGroups; may be given several times (default: {keys.SCHEDULER_NAME})",
    )
    add("--default-queue", default=keys.DEFAULT_QUEUE, help="queue that is to exist (default: %(default)s)")
    add(
        "--inherit-owner-annotations",
        type=_flag(_truth),
        nargs="?",
        const=True,
        default=True,
        metavar="BOOL",
        help="whether annotations of a pod's owner count for its PodGroup (default: true)",
    )
    for name in ("podgroup", "queue"):
        add(
            f"--worker-threads-for-{name}",
            type=_flag(_count),
            default=5,
            metavar="NUMBER",
            help=f"how many objects the {name} controller works on at once (default: %(default)s)",
        )
    add(
        "--max-requeue-num",
        type=_flag(_count),
        default=15,
        metavar="NUMBER",
        help="failures in a row after which an object is left until it changes (default: %(default)s)",
    )


def _add_operation(add: Any) -> None:
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
    add("--log-level", choices=LEVELS, default="info", help="default: %(default)s")
    add("--log-format", choices=FORMATS, default="console", help="default: %(default)s")


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise OptionError(f"{text!r} is no rate: write a number above 0")
    return rate


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise OptionError(f"{text!r} is no count: write a whole number from 1")
    return int(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


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
