"""Finds delayed actions on jobs that may be under way: Volcano keeps them in memory, so a switch loses them."""

from typing import Final

from volcano_py.api import keys
from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, ref_of, sequence, text

_EVICTED: Final = frozenset({"PodEvicted", "*"})
_UNKNOWN: Final = frozenset({"Unknown", "*"})
_ACTIVE: Final = frozenset({"Pending", "Running"})
_ADVICE: Final = "wait until Volcano has acted, or act by hand after the switch"


class Delays:
    """Goes through jobs, then through PodGroups and pods, and tells what does not fit together.

    Delays for `PodPending`, `PodFailed` and `TaskCompleted` are of no interest: our controllers derive them from the
    times that pods state.
    """

    def __init__(self) -> None:
        self._events: dict[tuple[str, str], frozenset[str]] = {}
        self._missing: dict[tuple[str, str], int] = {}
        self._unknown: set[tuple[str, str]] = set()

    def job(self, job: Obj) -> None:
        """Note a job whose policies wait before they act."""
        if text(job, "status", "state", "phase") not in _ACTIVE:
            return
        spec = mapping(job, "spec")
        policies = [*sequence(spec, "policies"), *(one for task in sequence(spec, "tasks") for one in _policies(task))]
        waiting = [one for one in policies if isinstance(one, dict) and one.get("timeout")]
        events = {str(name) for one in waiting for name in (*sequence(one, "events"), one.get("event")) if name}
        if events & (_EVICTED | _UNKNOWN):
            status, ref = mapping(job, "status"), ref_of(job)
            alive = [status.get(counter) for counter in ("running", "pending", "unknown")]
            self._events[ref.namespace, ref.name] = frozenset(events)
            self._missing[ref.namespace, ref.name] = sum(count for count in alive if isinstance(count, int))

    def group(self, group: Obj, owner: Obj | None) -> None:
        """Note a PodGroup some of whose pods cannot be placed."""
        if owner is not None and text(group, "status", "phase") == "Unknown":
            self._unknown.add((text(group, "metadata", "namespace"), text(owner, "name")))

    def pod(self, pod: Obj) -> None:
        """Count a pod that has not ended."""
        name = text(pod, "metadata", "labels", keys.JOB_NAME)
        key = text(pod, "metadata", "namespace"), name
        if name and key in self._missing:
            self._missing[key] -= 1

    def found(self) -> list[Finding]:
        """Return the jobs whose delayed action may be under way."""
        found = []
        for (namespace, name), events in self._events.items():
            ref, missing = Ref("Job", name, namespace), self._missing[namespace, name]
            if missing > 0 and events & _EVICTED:
                what = f"{missing} of its pods are gone, and its policy for this waits: the switch loses the delay"
                found.append(Finding(Group.DIFFERS, "policy-timeout", ref, what, _ADVICE))
            elif (namespace, name) in self._unknown and events & _UNKNOWN:
                what = "its PodGroup is Unknown, and its policy for this waits: the switch loses the delay"
                found.append(Finding(Group.DIFFERS, "policy-timeout", ref, what, _ADVICE))
        return found


def _policies(task: Obj) -> list[Obj]:
    return sequence(task, "policies")
