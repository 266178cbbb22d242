"""The `vc-webhook-manager` command: its flags, and the options that they set."""

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from volcano_py.admission.certificates import DEFAULT_LIFETIME
from volcano_py.admission.contract import Options
from volcano_py.admission.manager import WebhookManager
from volcano_py.admission.options import (
    DEFAULT_HEALTH_ADDRESS,
    DEFAULT_METRICS_ADDRESS,
    DEFAULT_NAMESPACE,
    DEFAULT_PATHS,
    LEASE,
    WebhookOptions,
    files_of,
    parse_paths,
)
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.admission.rules import RULES
from volcano_py.admission.server import ServerOptions
from volcano_py.api import keys
from volcano_py.cli.feature_gates import ADMISSION_FEATURES, read_feature_gates
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
from volcano_py.cli.volcano_flags import ADMISSION_FLAGS, add_volcano_flags, ignored_flags, with_dashes
from volcano_py.kube.credentials import Credentials
from volcano_py.runtime.options import (
    OptionError,
    format_duration,
    parse_duration,
    parse_port,
)

_DEEPEST: Final = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer reviews until a signal ends the process; return the exit code."""
    parser = webhooks_parser()
    flags = parser.parse_args(with_dashes(sys.argv[1:] if arguments is None else arguments))
    try:
        enabled, gates = read_feature_gates(flags.feature_gates, ADMISSION_FEATURES)
        ignored = [*ignored_flags(flags, {}, ADMISSION_FLAGS), *gates]
        options = _options(flags, queue_gate=enabled[keys.QUEUE_ADMISSION])
    except OptionError as error:
        parser.error(str(error))
    begin(flags, ignored)

    def manager(credentials: Credentials) -> WebhookManager:
        return WebhookManager(credentials, options, RULES, registry=process_registry())

    return run(flags, manager)


def _options(flags: argparse.Namespace, *, queue_gate: bool) -> WebhookOptions:
    """Return the manager's options; raise OptionError for flags that contradict each other."""
    rules = Options(
        scheduler_names=tuple(flags.scheduler_name or (keys.SCHEDULER_NAME,)),
        max_queue_depth=flags.max_queue_depth,
        protect_root_queue=flags.enable_root_queue_protection,
        check_allocated_pods=flags.enable_queue_allocated_pods_check,
        queue_gate=queue_gate,
    )
    return WebhookOptions(
        paths=flags.enabled_admission,
        rules=rules,
        conf=Path(flags.admission_conf) if flags.admission_conf else None,
        files=files_of(flags.tls_cert_file, flags.tls_private_key_file, flags.ca_cert_file),
        namespace=flags.webhook_namespace or DEFAULT_NAMESPACE,
        service=flags.webhook_service_name,
        url=flags.webhook_url,
        lifetime=timedelta(seconds=flags.certificate_lifetime),
        server=ServerOptions(host=flags.listen_address, port=flags.port),
        freeze_garbage=True,
        graceful_s=flags.graceful_shutdown_time,
        metrics_address=flags.metrics_address if flags.enable_metrics else None,
        health_address=flags.healthz_address if flags.enable_healthz else None,
        lease=lease_of(flags),
    )


def webhooks_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = ProgramParser(
        prog="vc-webhook-manager",
        description="The admission webhooks of a batch system for Kubernetes.",
        epilog="Volcano's other flags are accepted with a warning, or refused with advice: see docs/flags.md.",
        allow_abbrev=False,
    )
    add_volcano_flags(parser, ADMISSION_FLAGS)
    add: Any = parser.add_argument
    add_connection(add)
    _add_address(add)
    _add_certificate(add)
    _add_rules(add)
    add_feature_gates(add, ADMISSION_FEATURES)
    add_election(add, LEASE, "write certificates and bundles")
    _add_operation(add)
    return parser


def _add_address(add: Any) -> None:
    add("--listen-address", default="", metavar="HOST", help="host of the webhooks (default: every interface)")
    add(
        "--port",
        type=flag(parse_port),
        default=8443,
        metavar="PORT",
        help="port of the webhooks (default: %(default)s)",
    )
    add("--webhook-service-name", default="", metavar="NAME", help="Service through which API servers call")
    add(
        "--webhook-namespace",
        default="",
        metavar="NAMESPACE",
        help=f"namespace of the Service, and of the Secret with the certificate (default: {DEFAULT_NAMESPACE})",
    )
    add(
        "--webhook-url",
        default="",
        metavar="URL",
        help="address at which API servers reach this process without a Service, such as https://10.0.0.1:8443",
    )


def _add_certificate(add: Any) -> None:
    add("--tls-cert-file", default="", metavar="FILE", help="certificate with its chain; read again when it changes")
    add("--tls-private-key-file", default="", metavar="FILE", help="key of the certificate; read again when it changes")
    add(
        "--ca-cert-file",
        default="",
        metavar="FILE",
        help="certificates of the issuers; without these three files, the leader makes a certificate",
    )
    add(
        "--certificate-lifetime",
        type=flag(parse_duration),
        default=DEFAULT_LIFETIME.total_seconds(),
        metavar="DURATION",
        help="lifetime of certificates that the leader makes; it replaces them after two thirds of this time "
        f"(default: {format_duration(DEFAULT_LIFETIME.total_seconds())})",
    )


def _add_rules(add: Any) -> None:
    add(
        "--enabled-admission",
        type=flag(parse_paths),
        default=DEFAULT_PATHS,
        metavar="PATHS",
        help=f"paths to serve, separated by commas, of: {', '.join(WEBHOOKS)} (default: {', '.join(DEFAULT_PATHS)})",
    )
    add(
        "--scheduler-name",
        type=flag(parse_name),
        action="append",
        metavar="NAME",
        help=f"scheduler names; jobs that name none get the first; may be repeated (default: {keys.SCHEDULER_NAME})",
    )
    add(
        "--admission-conf",
        default="",
        metavar="FILE",
        help="file with resource groups of pods; read again when it changes",
    )
    add(
        "--max-queue-depth",
        type=flag(_depth),
        default=5,
        metavar="NUMBER",
        help="how deep queues may be nested below root (default: %(default)s)",
    )
    add(
        "--enable-root-queue-protection",
        **SWITCH,
        default=True,
        help="refuse changes of the resources of the root queue (default: true)",
    )
    add(
        "--enable-queue-allocated-pods-check",
        **SWITCH,
        default=False,
        help="refuse to delete a queue that holds pods (default: false)",
    )


def _add_operation(add: Any) -> None:
    add(
        "--graceful-shutdown-time",
        type=flag(parse_duration),
        default=30.0,
        metavar="DURATION",
        help="longest time to complete reviews when the process ends (default: 30s)",
    )
    add_operation(add, DEFAULT_METRICS_ADDRESS, DEFAULT_HEALTH_ADDRESS, "--metrics-address")


def _depth(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _DEEPEST):
        raise OptionError(f"{text!r} is not a depth: write a whole number from 1 to {_DEEPEST}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
