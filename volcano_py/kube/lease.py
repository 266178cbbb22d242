"""The Lease by which processes elect their leader: its fields and their wire form."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

JITTER: Final = 1.2  # largest addition to a pause, in retry periods


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """The lease and its times; the defaults are Volcano's."""

    name: str = "volcano"
    namespace: str = "volcano-system"
    duration_s: float = 15.0
    """How long others wait after the last renewal that they saw. The Lease holds whole seconds, rounded down."""
    renew_deadline_s: float = 10.0
    """How long the leader tries to renew before it gives up."""
    retry_period_s: float = 2.0

    def __str__(self) -> str:
        """Return namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def seconds(self) -> int:
        """The duration as the Lease has it."""
        return int(self.duration_s)

    def problem(self) -> str:
        """Return what is wrong, "" if nothing is; the rules for the times are client-go's."""
        if not self.name or not self.namespace:
            return "the lease needs a name and a namespace"
        if self.duration_s < 1:
            return "the lease duration must be at least 1s"
        if self.seconds <= self.renew_deadline_s:
            return "the lease duration, in whole seconds, must be longer than the renew deadline"
        if self.retry_period_s <= 0:
            return "the retry period must be longer than 0"
        if self.renew_deadline_s <= JITTER * self.retry_period_s:
            return f"the renew deadline must be longer than {JITTER} retry periods"
        return ""


class LeaseRecord(NamedTuple):
    """The fields of a Lease that the election uses; every renewal makes a different record."""

    holder: str = ""
    duration_s: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> "LeaseRecord":
        """Read a Lease."""
        spec: Mapping[str, Any] = lease.get("spec") or {}
        return cls(
            holder=str(spec.get("holderIdentity") or ""),
            duration_s=int(spec.get("leaseDurationSeconds") or 0),
            acquired=str(spec.get("acquireTime") or ""),
            renewed=str(spec.get("renewTime") or ""),
            transitions=int(spec.get("leaseTransitions") or 0),
        )

    def into(self, lease: Mapping[str, Any]) -> dict[str, Any]:
        """Return a Lease with this record; its other fields stay."""
        mine = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_s,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }
        return {**lease, "spec": {**(lease.get("spec") or {}), **mine}}


def micro_time(moment: datetime) -> str:
    """Write a moment in UTC as a MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
