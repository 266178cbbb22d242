"""The `vc-controller-manager` command: its flags, and the options that they set."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from volcano_py.api import keys
from volcano_py.cli.feature_gates import CONTROLLER_FEATURES, read_feature_gates
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
from volcano_py.cli.process import begin, process_registry, run
from volcano_py.cli.volcano_flags import CONTROLLER_FLAGS, IgnoredFlag, add_volcano_flags, ignored_flags, with_dashes
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import (
    DEFAULT_HEALTH_ADDRESS,
    DEFAULT_METRICS_ADDRESS,
    LEASE,
    Chosen,
    ManagerOptions,
    chosen_controllers,
)
from volcano_py.controllers.table import CONTROLLERS
from volcano_py.kube.credentials import Credentials
from volcano_py.runtime.options import OptionError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controllers until a signal ends them; return the exit code."""
    parser = controllers_parser()
    flags = parser.parse_args(with_dashes(sys.argv[1:] if arguments is None else arguments))
    try:
        _, gates = read_feature_gates(flags.feature_gates, CONTROLLER_FEATURES)
        ignored = [*ignored_flags(flags, {}, CONTROLLER_FLAGS), *gates]
        options = _options(flags)
    except OptionError as error:
        parser.error(str(error))
    ignored += [IgnoredFlag(f"--controllers={name}", "not implemented yet") for name in flags.controllers.missing]
    begin(flags, ignored)

    def manager(credentials: Credentials) -> ControllerManager:
        return ControllerManager(credentials, options, registry=process_registry())

    return run(flags, manager)


def _options(flags: argparse.Namespace) -> ManagerOptions:
    """Return the manager's options; raise OptionError for flags that contradict each other."""
    return ManagerOptions(
        controllers=flags.controllers.controllers,
        scheduler_names=tuple(flags.scheduler_name or (keys.SCHEDULER_NAME,)),
        default_queue=flags.default_queue,
        inherit_owner_annotations=flags.inherit_owner_annotations,
        rate_per_s=flags.kube_api_qps,
        burst=flags.kube_api_burst,
        job_workers=flags.worker_threads,
        podgroup_workers=flags.worker_threads_for_podgroup,
        queue_workers=flags.worker_threads_for_queue,
        cron_job_workers=flags.worker_threads_for_cronjob,
        garbage_workers=flags.worker_threads_for_gc,
        attempts=flags.max_requeue_num,
        metrics_address=flags.listen_address if flags.enable_metrics else None,
        health_address=flags.healthz_address if flags.enable_healthz else None,
        lease=lease_of(flags),
    )


def controllers_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = ProgramParser(
        prog="vc-controller-manager",
        description="The controllers of a batch system for Kubernetes.",
        epilog="Volcano's other flags are accepted with a warning, or refused with advice: see docs/flags.md.",
        allow_abbrev=False,
    )
    add_volcano_flags(parser, CONTROLLER_FLAGS)
    add: Any = parser.add_argument
    add_connection(add)
    _add_pace(add)
    _add_behaviour(add)
    add_feature_gates(add, CONTROLLER_FEATURES)
    add_election(add, LEASE, "work")
    add_operation(add, DEFAULT_METRICS_ADDRESS, DEFAULT_HEALTH_ADDRESS)
    return parser


def _add_pace(add: Any) -> None:
    add(
        "--kube-api-qps",
        type=flag(_rate),
        default=None,
        metavar="NUMBER",
        help="writes per second, on average (default: no limit)",
    )
    add(
        "--kube-api-burst",
        type=flag(_count),
        default=100,
        metavar="NUMBER",
        help="with --kube-api-qps, writes that may go out at once after a pause (default: %(default)s)",
    )


def _add_behaviour(add: Any) -> None:
    add(
        "--controllers",
        type=flag(chosen_controllers),
        default=Chosen(frozenset(CONTROLLERS)),
        metavar="LIST",
        help=f"controllers to run: *, or some of {', '.join(sorted(CONTROLLERS))}; -NAME leaves one out (default: *)",
    )
    add(
        "--scheduler-name",
        type=flag(parse_name),
        action="append",
        metavar="NAME",
        help=f"pods with this spec.schedulerName get PodGroups; may be repeated (default: {keys.SCHEDULER_NAME})",
    )
    add(
        "--default-queue",
        type=flag(parse_name),
        default=keys.DEFAULT_QUEUE,
        help="queue that is created if it does not exist (default: %(default)s)",
    )
    add(
        "--inherit-owner-annotations",
        **SWITCH,
        default=True,
        help="whether a PodGroup takes over annotations of the pod's owner (default: true)",
    )
    add(
        "--worker-threads",
        type=flag(_count),
        default=32,
        metavar="NUMBER",
        help="how many jobs (vcjobs) the job controller works on at once (default: %(default)s)",
    )
    for name, threads in (("podgroup", 5), ("queue", 5), ("cronjob", 3), ("gc", 1)):
        add(
            f"--worker-threads-for-{name}",
            type=flag(_count),
            default=threads,
            metavar="NUMBER",
            help=f"how many objects the {name} controller works on at once (default: %(default)s)",
        )
    add(
        "--max-requeue-num",
        type=flag(_count),
        default=15,
        metavar="NUMBER",
        help="failures in a row after which an object is not tried again until it changes (default: %(default)s)",
    )


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise OptionError(f"{text!r} is not a rate: write a number above 0")
    return rate


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise OptionError(f"{text!r} is not a count: write a whole number from 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
