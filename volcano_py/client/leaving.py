"""What an object waits for that is being deleted."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from volcano_py.client.ages import age, time_of

Obj = Mapping[str, Any]
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_SHOWN: Final = 3
_OF_KUBERNETES: Final = {FOREGROUND: "its pods are gone", ORPHAN: "its pods are released from it"}
"""Finalizers that the garbage collector of Kubernetes removes itself."""


def waits_until(metadata: Obj) -> str:
    """Return what must happen before an object is gone; empty if nothing keeps it."""
    waits = [str(one) for one in metadata.get("finalizers") or ()]
    others = [one for one in waits if one not in _OF_KUBERNETES]
    parts = [_OF_KUBERNETES[one] for one in waits if one in _OF_KUBERNETES]
    if others:
        parts.append(f"{' and '.join(others)} {'is' if len(others) == 1 else 'are'} removed from metadata.finalizers")
    return " and ".join(parts)


def leaving(metadata: Obj, pods: Sequence[Obj], now: datetime) -> tuple[str, list[str]]:
    """Return what a job that is being deleted waits for, and what helps."""
    until = waits_until(metadata)
    if not until:
        return "it is being deleted", []
    waits = set(metadata.get("finalizers") or ())
    told, ways = "", []
    if FOREGROUND in waits and pods:
        more = f", and {len(pods) - _SHOWN} more" if len(pods) > _SHOWN else ""
        told = f": {'; '.join(_pod(pod, now) for pod in pods[:_SHOWN])}{more}"
        held = next((pod for pod in pods if pod["metadata"].get("finalizers")), None)
        first = (held or pods[0])["metadata"]
        ways = [f"kubectl describe pod {first['name']} -n {first.get('namespace', '')}    # what keeps it?"]
        if held is not None:
            ways.append("find the controller that adds the finalizer of the pod: it removes it when it has cleaned up")
    elif waits & _OF_KUBERNETES.keys():
        ways = [
            "kubectl -n kube-system get pods    # does kube-controller-manager run? its garbage collector does that"
        ]
    if waits - _OF_KUBERNETES.keys():
        ways.append("find the controller that adds the finalizer: it removes it when it has cleaned up, if it runs")
    return f"it is being deleted, and waits until {until}{told}", ways


def _pod(pod: Obj, now: datetime) -> str:
    metadata = pod["metadata"]
    finalizers = ", ".join(metadata.get("finalizers") or ())
    end = time_of(metadata.get("deletionTimestamp"))
    told = f"{metadata['name']} is not being deleted yet"
    if end is not None:  # the time includes the grace period
        began = end - timedelta(seconds=int(metadata.get("deletionGracePeriodSeconds") or 0))
        told = f"{metadata['name']} has been terminating for {age(began, now)}"
    return f"{told}, finalizers {finalizers}" if finalizers else told
