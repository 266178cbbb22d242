"""The times of pods from the audit log of kube-apiserver: when it got each request, and when it had answered.

A watch shows the same a little later, and much later if the machine is full: this driver may wait for its turn then.
"""

import contextlib
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from benchmarks.servers import Server, real
from benchmarks.steady.times import PodTimes

_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Request", "verbs": ["patch", "update"], "resources": [{"resources": ["pods/status"]}]},
        {"level": "Metadata", "verbs": ["create"], "resources": [{"resources": ["pods", "pods/binding"]}]},
        {"level": "None"},
    ],
}
_MOST_MB: Final = 10_000  # before kube-apiserver begins another file


@dataclass(frozen=True)
class AuditedServer(Server):
    """The real API server, which notes the requests that change pods in a file."""

    log: Path

    def times(self, seen: Mapping[str, PodTimes]) -> dict[str, PodTimes]:
        """Return the times that the log knows; what it does not know is as this driver has seen it."""
        with self.log.open("rb") as lines:
            return times(lines, seen, time.monotonic() - time.time())


class _Condition(msgspec.Struct):
    type: str
    status: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] | None = None


class _Body(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class _Reference(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Answer(msgspec.Struct):
    code: int = 0


class _Request(msgspec.Struct, rename="camel"):
    """One line of the log."""

    request_received_timestamp: datetime
    stage_timestamp: datetime
    object_ref: _Reference = msgspec.field(default_factory=_Reference)
    response_status: _Answer = msgspec.field(default_factory=_Answer)
    request_object: Any = None


@contextlib.contextmanager
def audited() -> Iterator[AuditedServer]:
    """Start the real API server with an audit log of what happens to pods."""
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        policy, log = Path(folder) / "policy.yaml", Path(folder) / "audit.log"
        policy.write_text(yaml.safe_dump(_POLICY))
        arguments = f"--audit-policy-file={policy}", f"--audit-log-path={log}", f"--audit-log-maxsize={_MOST_MB}"
        with real(*arguments) as server:
            yield AuditedServer(server.kind, server.kubeconfig, server.pids, log)


def times(lines: Iterable[bytes], seen: Mapping[str, PodTimes], offset_s: float) -> dict[str, PodTimes]:
    """Return the times of pods by name, in seconds of the clock that is ``offset_s`` ahead of the log's.

    A pod is *created*, has a *reason* and has *ended* when the server has answered; it is *bound* when the server gets
    the Binding. Only the first request of each kind counts that the server accepted.
    """
    found = {name: msgspec.structs.replace(pod) for name, pod in seen.items()}
    noted: set[tuple[str, str]] = set()
    read = msgspec.json.Decoder(_Request).decode
    for line in lines:
        request = read(line)
        about = request.object_ref
        pod, what = found.get(about.name), _what(request)
        if pod is None or not what or request.response_status.code >= 300 or (about.name, what) in noted:
            continue
        noted.add((about.name, what))
        at = request.request_received_timestamp if what == "bound" else request.stage_timestamp
        setattr(pod, what, at.timestamp() + offset_s)
    return found


def _what(request: _Request) -> str:
    """Return the field of PodTimes that a request tells, "" if none."""
    about = request.object_ref
    if about.subresource == "binding":
        return "bound"
    if about.subresource != "status":
        return "created"
    status = msgspec.convert(request.request_object or {}, _Body).status
    if status.phase == "Succeeded":
        return "ended"
    unschedulable = any(one.type == "PodScheduled" and one.status == "False" for one in status.conditions or ())
    return "reason" if unschedulable else ""
