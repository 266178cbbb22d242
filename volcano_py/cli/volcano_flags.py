"""Flags and environment variables of Volcano's programs that are not implemented here.

Most of them are accepted; one warning lists all that have no effect. A flag is refused, with advice, if the program
would not do what the user asks for without it. `docs/flags.md` shows this table. A flag that becomes implemented is
removed from it.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from volcano_py.runtime.options import OptionError

_REDIRECTION: Final = "2>&1"
TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class VolcanoFlag(NamedTuple):
    """A flag of Volcano that has no effect here."""

    name: str  # without dashes
    meaning: str  # why it has no effect, and what to do
    refused: bool = False  # else a warning
    boolean: bool = False  # written --flag or --flag=true
    as_here: str | None = None  # the value that asks for the behaviour here: accepted silently
    explained: bool = False  # the warning also has the meaning, because users may rely on the flag


class IgnoredFlag(NamedTuple):
    """A flag or environment variable that was given and has no effect here."""

    shown: str
    why: str = ""  # what the operator must know about it, "" for nothing


_NO_SAMPLING: Final = "all nodes are always examined: remove the flag"
_ADAPTIVE: Final = "the number of concurrent requests adapts to the API server's answers: remove the flag"
_NO_DUMP: Final = (
    "there is no dump of the cache, and SIGUSR1 and SIGUSR2 write none; read /metrics, /debug/jobs and the conditions"
)
_ROOM: Final = "what CSI drivers say about their room always counts"
_NO_TLS: Final = "health is served over plain HTTP only: remove the flag, and use scheme HTTP in probes"
_PLAIN_LOGS: Final = "logs go to standard error; use --log-level and --log-format"

_TLS: Final = (
    VolcanoFlag("ca-cert-file", _NO_TLS, refused=True, as_here=""),
    VolcanoFlag("tls-cert-file", _NO_TLS, refused=True, as_here=""),
    VolcanoFlag("tls-private-key-file", _NO_TLS, refused=True, as_here=""),
)
_LOCK_NAMESPACE: Final = VolcanoFlag(
    "lock-object-namespace",
    "the namespace of the lease is --leader-elect-resource-namespace: write that flag instead",
    refused=True,
    as_here="volcano-system",
)
_LOGS: Final = (
    VolcanoFlag("log-flush-frequency", "every log line is written at once"),
    VolcanoFlag("v", "log levels have names here: use --log-level=debug for more, warning for less"),
    VolcanoFlag("vmodule", _PLAIN_LOGS),
    VolcanoFlag("logtostderr", _PLAIN_LOGS, boolean=True, as_here="true"),
    VolcanoFlag("alsologtostderr", _PLAIN_LOGS, boolean=True),
    VolcanoFlag("stderrthreshold", _PLAIN_LOGS),
    VolcanoFlag("alsologtostderrthreshold", _PLAIN_LOGS),
    VolcanoFlag("legacy-stderr-threshold-behavior", _PLAIN_LOGS, boolean=True),
    VolcanoFlag("log-dir", _PLAIN_LOGS, as_here="", explained=True),
    VolcanoFlag("log-file", _PLAIN_LOGS, as_here="", explained=True),
    VolcanoFlag("log-file-max-size", _PLAIN_LOGS),
    VolcanoFlag("log-backtrace-at", _PLAIN_LOGS),
    VolcanoFlag("skip-headers", _PLAIN_LOGS, boolean=True),
    VolcanoFlag("skip-log-headers", _PLAIN_LOGS, boolean=True),
    VolcanoFlag("add-dir-header", _PLAIN_LOGS, boolean=True, as_here="false"),
    VolcanoFlag("one-output", _PLAIN_LOGS, boolean=True),
)
_NO_SHARDS: Final = (
    "there is no sharding controller yet: NodeShards are written by hand or by Volcano's sharding controller, "
    "so the flag has no effect"
)

_NO_DIVISION: Final = (
    "there is no controller that divides nodes among schedulers: write NodeShards by hand, or run Volcano's sharding "
    "controller"
)

VOLCANO_FLAGS: Final = (
    *_TLS,
    VolcanoFlag(
        "resync-period",
        "if a watch breaks, the program lists the resource again; there is no other resync",
        as_here="0",
    ),
    VolcanoFlag("enable-pprof", "there is no pprof; use py-spy on the process", boolean=True, as_here="false"),
    VolcanoFlag(
        "priority-class",
        "PriorityClasses are always read: remove the flag; to ignore priorities, remove the plugin priority from the "
        "configuration",
        refused=True,
        boolean=True,
        as_here="true",
    ),
    VolcanoFlag("kube-api-qps", _ADAPTIVE),
    VolcanoFlag("kube-api-burst", _ADAPTIVE),
    VolcanoFlag("minimum-feasible-nodes", _NO_SAMPLING),
    VolcanoFlag("minimum-percentage-nodes-to-find", _NO_SAMPLING),
    VolcanoFlag("percentage-nodes-to-find", _NO_SAMPLING, as_here="100"),
    VolcanoFlag("csi-storage", _ROOM, boolean=True, as_here="true", explained=True),
    VolcanoFlag(
        "node-selector",
        "the scheduler uses all nodes of the cluster: remove the flag, and use taints to keep pods away from nodes",
        refused=True,
        as_here="",
    ),
    VolcanoFlag("cache-dumper", _NO_DUMP, boolean=True, as_here="false", explained=True),
    VolcanoFlag("cache-dump-dir", _NO_DUMP, explained=True),
    VolcanoFlag("node-worker-threads", "one loop handles all watch events, without workers: remove the flag"),
    VolcanoFlag("gate-removal-worker-num", "a fixed number of workers removes scheduling gates: remove the flag"),
    VolcanoFlag(
        "resource-sync-timeout", "the start waits until the first lists are complete; until then /readyz reports it"
    ),
    VolcanoFlag(
        "unschedulable-job-cache-max-skip-duration",
        "nothing to tune: jobs that wait unchanged are looked at again when something changes that could help",
        explained=True,
    ),
    _LOCK_NAMESPACE,
    *_LOGS,
)
"""Of vc-scheduler, in the order of Volcano's own list."""

CONTROLLER_FLAGS: Final = (
    *_TLS,
    VolcanoFlag("sharding-configmap", _NO_SHARDS),
    VolcanoFlag("sharding-configmap-namespace", _NO_SHARDS),
    VolcanoFlag("scheduler-configs", _NO_DIVISION, explained=True),
    VolcanoFlag("shard-sync-period", _NO_DIVISION),
    VolcanoFlag("enable-node-event-trigger", _NO_DIVISION, boolean=True),
    VolcanoFlag("detection-period-of-dependson-task", "tasks that wait for others learn of them at once, by a watch"),
    _LOCK_NAMESPACE,
    *_LOGS,
)
"""Of vc-controller-manager."""

_SHARED_READS: Final = "reviews that arrive together share their requests, so that there are few: remove the flag"
_CASCADE: Final = "the queue controller closes the queues below a closed queue, and opens none below it, in any case"
_OPEN: Final = "an open queue may be deleted; --enable-queue-allocated-pods-check keeps those that hold pods"

ADMISSION_FLAGS: Final = (
    VolcanoFlag("kube-api-qps", _SHARED_READS),
    VolcanoFlag("kube-api-burst", _SHARED_READS),
    VolcanoFlag("enable-cascade-child-queue-close", _CASCADE, boolean=True, as_here="false", explained=True),
    VolcanoFlag("enable-queue-closed-before-delete-check", _OPEN, boolean=True, as_here="false", explained=True),
    *_LOGS,
)
"""Of vc-webhook-manager."""

VOLCANO_VARIABLES: Final = (
    VolcanoFlag("BATCH_BIND_NUM", "binds go out as soon as they are decided, not in batches"),
    VolcanoFlag(
        "MULTI_SCHEDULER_ENABLE",
        "pods cannot be divided among schedulers: run one scheduler for each scheduler name, and unset the variable",
        refused=True,
        boolean=True,
        as_here="false",
    ),
    VolcanoFlag("SCHEDULER_POD_NAME", "pods are not divided among schedulers, so the variable has no effect"),
    VolcanoFlag("SCHEDULER_NUM", "pods are not divided among schedulers, so the variable has no effect"),
    VolcanoFlag("PANIC_ON_ERROR", "an accounting error never ends the process", boolean=True, as_here="false"),
    VolcanoFlag("DEBUG_SOCKET_DIR", "there is no socket that changes the log level; use --log-level", as_here=""),
)
"""Environment variables that are treated in the same way."""


def add_volcano_flags(parser: argparse.ArgumentParser, table: Sequence[VolcanoFlag] = VOLCANO_FLAGS) -> None:
    """Let a parser accept Volcano's flags; `--help` does not show them."""
    add: Any = parser.add_argument
    for flag in table:
        names = ("-v", "--v") if flag.name == "v" else (f"--{flag.name}",)
        several = {"nargs": "?", "const": "true"} if flag.boolean else {}
        add(*names, action="append", dest=_dest(flag), help=argparse.SUPPRESS, **several)


def with_dashes(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with ``-`` for ``_`` in the names of flags; Volcano accepts both spellings.

    The arguments in Volcano's chart end with a redirection. It is left out: no shell reads it, and Volcano ignores it.
    """
    found: list[str] = []
    for argument in arguments:
        if argument == _REDIRECTION:
            continue
        name, equals, value = argument.partition("=")
        found.append(f"{name.replace('_', '-')}{equals}{value}" if name.startswith("--") else argument)
    return found


def ignored_flags(
    flags: argparse.Namespace, environment: Mapping[str, str], table: Sequence[VolcanoFlag] = VOLCANO_FLAGS
) -> list[IgnoredFlag]:
    """Return the given flags of Volcano that have no effect here.

    Raises OptionError for a flag that must not be ignored.
    """
    found: list[IgnoredFlag] = []
    for flag in table:
        dashes = "-" if flag.name == "v" else "--"
        found += _judge(flag, f"{dashes}{flag.name}", getattr(flags, _dest(flag)) or ())
    for variable in VOLCANO_VARIABLES:
        if environment.get(variable.name):
            found += _judge(variable, f"${variable.name}", (environment[variable.name],))
    return found


def in_one_line(found: Iterable[IgnoredFlag]) -> list[str]:
    """Return the list for one warning: the flags without a reason, then each reason with its flags."""
    by_reason: dict[str, list[str]] = {"": []}
    for one in found:
        by_reason.setdefault(one.why, []).append(one.shown)
    return [*by_reason.pop(""), *(f"{', '.join(shown)} ({why})" for why, shown in by_reason.items())]


def parse_boolean(text: str) -> bool:
    """Read a boolean in the spellings of Go's flags."""
    if text in TRUE | FALSE:
        return text in TRUE
    raise OptionError(f"{text!r} is neither true nor false")


def _judge(flag: VolcanoFlag, shown: str, values: Iterable[str]) -> list[IgnoredFlag]:
    given = [_plain(flag, shown, value) for value in values]
    if all(value == flag.as_here for value in given):
        return []
    if flag.refused:
        raise OptionError(f"{shown}={given[-1]}: {flag.meaning}")
    return [IgnoredFlag(shown, flag.meaning if flag.explained else "")]


def _plain(flag: VolcanoFlag, shown: str, value: str) -> str:
    if not flag.boolean:
        return value
    try:
        return "true" if parse_boolean(value) else "false"
    except OptionError as error:
        raise OptionError(f"{shown}: {error}") from error


def _dest(flag: VolcanoFlag) -> str:
    return "volcano_" + flag.name.replace("-", "_")
