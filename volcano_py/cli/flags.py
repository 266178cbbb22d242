"""Flags that all programs share, and the parsers of their values."""

import argparse
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, TypeVar

import volcano_py
from volcano_py.cli.feature_gates import Feature
from volcano_py.cli.volcano_flags import parse_boolean
from volcano_py.kube.lease import LeaseOptions
from volcano_py.runtime.logs import FORMATS, LEVELS
from volcano_py.runtime.options import (
    ListenAddress,
    OptionError,
    format_duration,
    parse_duration,
    parse_listen_address,
    parse_port,
)

T = TypeVar("T")

LOCK: Final = "leases"
"""The only kind of lock that is supported."""


def flag(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a parser whose error message argparse shows unchanged."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except OptionError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed


def parse_name(text: str) -> str:
    """Read a name, which must not be empty."""
    if not text.strip():
        raise OptionError(f"{text!r} is not a name: write one, or leave the flag out")
    return text


SWITCH: Final[dict[str, Any]] = {
    "nargs": "?",
    "const": True,
    "type": flag(parse_boolean),
    "metavar": "true|false",
}
"""Arguments of argparse for a flag that is written --flag or --flag=true."""


def add_connection(add: Any) -> None:
    """Add --version and the flags of the connection to the API server."""
    add("--version", action="version", version=f"volcano_py {volcano_py.__version__}")
    add(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="kubeconfig of the cluster (default: $KUBECONFIG, the account of the pod, or ~/.kube/config)",
    )
    add("--master", default="", metavar="URL", help="address of the API server, instead of that in the kubeconfig")


class ProgramParser(argparse.ArgumentParser):
    """The parser of a program whose output is a log: a mistake is one line, without a list of all flags."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end with code 2."""
        self.exit(2, f"{self.prog}: error: {message}; {self.prog} --help lists all flags\n")


def add_feature_gates(add: Any, features: Iterable[Feature]) -> None:
    """Add the flag that switches features."""
    switched = ", ".join(feature.name for feature in features if not feature.otherwise)
    add(
        "--feature-gates",
        action="append",
        default=[],
        metavar="NAME=true|false,...",
        help=f"switch features on or off{f': {switched}' if switched else ''}; docs/flags.md lists all that are known",
    )


def add_port(parser: argparse.ArgumentParser) -> None:
    """Add the port of an embedded API server."""
    parser.add_argument(
        "--port",
        type=flag(parse_port),
        default=0,
        metavar="PORT",
        help="port of the API server; 0 takes a free one (default)",
    )


def add_operation(
    add: Any, metrics: ListenAddress, health: ListenAddress, metrics_flag: str = "--listen-address"
) -> None:
    """Add the flags of metrics, health and logs."""
    add(
        metrics_flag,
        type=flag(parse_listen_address),
        default=metrics,
        metavar="HOST:PORT",
        help="where metrics are served (default: %(default)s)",
    )
    add(
        "--healthz-address",
        type=flag(parse_listen_address),
        default=health,
        metavar="HOST:PORT",
        help="where /healthz and /readyz are served (default: %(default)s)",
    )
    add("--enable-metrics", **SWITCH, default=True, help="serve metrics (default: true)")
    add("--enable-healthz", **SWITCH, default=True, help="serve /healthz and /readyz (default: true)")
    add("--log-level", choices=LEVELS, default="info", help="default: %(default)s")
    add("--log-format", choices=FORMATS, default="console", help="default: %(default)s")


def add_election(add: Any, lease: LeaseOptions, what: str) -> None:
    """Add the flags of the leader election; ``lease`` has the defaults, ``what`` says what only the leader does."""
    text = f"{what} only while holding a lease, so that several replicas may run (default: true)"
    add("--leader-elect", **SWITCH, default=True, help=text)
    durations = {
        "--leader-elect-lease-duration": (
            lease.duration_s,
            "how long other replicas wait for a leader that does not renew the lease",
        ),
        "--leader-elect-renew-deadline": (lease.renew_deadline_s, "how long the leader tries to renew the lease"),
        "--leader-elect-retry-period": (lease.retry_period_s, "time between two attempts to get or renew the lease"),
    }
    for name, (default, meaning) in durations.items():
        text = f"{meaning} (default: {format_duration(default)})"
        add(name, type=flag(parse_duration), default=default, metavar="DURATION", help=text)
    add("--leader-elect-resource-lock", default=LOCK, metavar="KIND", help="kind of lock; only %(default)s is possible")
    add(
        "--leader-elect-resource-name",
        default=lease.name,
        metavar="NAME",
        help="name of the lease (default: %(default)s)",
    )
    add(
        "--leader-elect-resource-namespace",
        default=lease.namespace,
        metavar="NAMESPACE",
        help="namespace of the lease (default: %(default)s)",
    )


def lease_of(flags: argparse.Namespace) -> LeaseOptions | None:
    """Return the lease that the flags of the election describe, None if there is no election.

    Raises OptionError if its times do not go together, or another kind of lock is asked for.
    """
    if not flags.leader_elect:
        return None
    if flags.leader_elect_resource_lock != LOCK:
        raise OptionError(
            f"--leader-elect-resource-lock={flags.leader_elect_resource_lock}: the election is over a Lease: "
            f"write {LOCK} or leave it out"
        )
    lease = LeaseOptions(
        name=flags.leader_elect_resource_name,
        namespace=flags.leader_elect_resource_namespace,
        duration_s=flags.leader_elect_lease_duration,
        renew_deadline_s=flags.leader_elect_renew_deadline,
        retry_period_s=flags.leader_elect_retry_period,
    )
    if problem := lease.problem():
        raise OptionError(f"--leader-elect-*: {problem}")
    return lease
