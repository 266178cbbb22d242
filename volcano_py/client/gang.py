"""A gang in numbers: the pods that it needs, those that have a node, wait or have ended, and what the rest requests."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from volcano_py.api import keys
from volcano_py.client import amounts
from volcano_py.client.amounts import Amounts
from volcano_py.client.sizes import least_of, minimum_of, replicas_of, tasks_of
from volcano_py.client.waiting_facts import Facts
from volcano_py.kube.resource import PODS

Obj = Mapping[str, Any]
_DONE: Final = frozenset({"Succeeded", "Failed"})
_STATES: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


class Gang(NamedTuple):
    """A gang in numbers."""

    minimum: int
    wanted: int
    """The replicas of all tasks; of a PodGroup without a job, the pods that exist."""
    missing: int
    """Pods that do not exist yet."""
    created: int
    """Pods that exist, whether they have ended or not."""
    placed: int
    succeeded: int
    failed: tuple[str, ...]
    """The pods that have failed; pods that are being deleted do not count, because others follow.

    If pods cannot be read, nobody knows their names, and they are empty.
    """
    waiting: int
    needs: Amounts
    """What the pods that the gang lacks request."""
    holds: Amounts
    """What its pods on nodes request."""
    short: tuple[str, ...]
    """Tasks that cannot reach their own minimum, because pods of theirs have failed."""
    seen: bool = True
    """Whether its pods could be read. If not, ``placed`` are those that run, by the status of the job, and whether more
    have a node is unknown."""

    @property
    def lacks(self) -> int:
        """How many pods it still needs."""
        return max(self.minimum - self.placed - self.succeeded, 0)

    @property
    def beyond(self) -> int:
        """How many pods beyond the minimum have no node yet."""
        return 0 if self.lacks else max(self.wanted - self.placed - self.succeeded - len(self.failed), 0)


def gang_of(facts: Facts) -> Gang:
    """Count the pods of a job or PodGroup."""
    if not facts.sees(PODS):
        return _unseen(facts)
    of_group: Obj = (facts.group or {}).get("spec") or {}
    minimum = int(of_group.get("minMember") or minimum_of(facts.job or {}))
    tasks = tasks_of(facts.job or {})
    on_nodes = [pod for pod in facts.pods if phase_of(pod) not in _DONE and (pod.get("spec") or {}).get("nodeName")]
    succeeded = sum(phase_of(pod) == "Succeeded" for pod in facts.pods)
    failed = [pod for pod in facts.pods if phase_of(pod) == "Failed" and not pod["metadata"].get("deletionTimestamp")]
    wanted = sum(map(replicas_of, tasks.values())) if tasks else len(facts.pods)
    return Gang(
        minimum=minimum,
        wanted=wanted,
        missing=max((minimum if facts.job is None else wanted) - len(facts.pods), 0),
        created=len(facts.pods),
        placed=len(on_nodes),
        succeeded=succeeded,
        failed=tuple(pod["metadata"]["name"] for pod in failed),
        waiting=sum(map(waits, facts.pods)),
        needs=_needs(facts, minimum - len(on_nodes) - succeeded),
        holds=amounts.total(map(amounts.requests_of, on_nodes)),
        short=tuple(_short(tasks, of_group, minimum, failed)),
    )


def _unseen(facts: Facts) -> Gang:
    """Return what the status of the job, or of the PodGroup, says of pods that cannot be read."""
    counts = told_counts(facts)
    of_group: Obj = (facts.group or {}).get("spec") or {}
    minimum = int(of_group.get("minMember") or minimum_of(facts.job or {}))
    created = sum(counts.values())
    not_begun = facts.group is not None and phase_of(facts.group) in ("", "Pending") and not created
    return Gang(
        minimum=minimum,
        wanted=sum(map(replicas_of, tasks_of(facts.job or {}).values())) or max(minimum, created),
        missing=0,
        created=created,
        placed=counts.get("running", 0),
        succeeded=counts.get("succeeded", 0),
        failed=("",) * counts.get("failed", 0),
        waiting=0,
        needs={name: one for name, one in amounts.read(of_group.get("minResources")).items() if one > 0 and not_begun},
        holds={},
        short=(),
        seen=False,
    )


def told_counts(facts: Facts) -> dict[str, int]:
    """Return how many pods are in each state, by the status of the job or PodGroup, without states of no pods."""
    status = (facts.job or facts.group or {}).get("status") or {}
    return {name: int(status[name]) for name in _STATES if status.get(name)}


def waits(pod: Obj) -> bool:
    """Say whether a pod waits for a node."""
    return not (pod.get("spec") or {}).get("nodeName") and phase_of(pod) not in _DONE


def phase_of(obj: Obj) -> str:
    """Return the phase of a pod or PodGroup."""
    return str((obj.get("status") or {}).get("phase") or "")


def waiting_pod(facts: Facts) -> Obj | None:
    """Return the pod, or the template of one, that is hardest to place: the one with the largest requests."""
    waiting: list[Obj] = [pod for pod in facts.pods if waits(pod)]
    waiting += [task.get("template") or {} for task, missing in _missing(facts) if missing]
    return max(waiting, key=lambda pod: sorted(amounts.requests_of(pod).items()), default=None)


def real(needs: Amounts) -> Amounts:
    """Return amounts without the number of pods, which a gang tells anyway."""
    return {name: amount for name, amount in needs.items() if name != keys.PODS}


def _needs(facts: Facts, lacking: int) -> Amounts:
    """Return what the pods that the gang lacks request: waiting pods first, then pods that do not exist yet."""
    found = [amounts.requests_of(pod) for pod in facts.pods if waits(pod)]
    for task, missing in _missing(facts):
        found += [amounts.requests_of(task.get("template") or {})] * missing
    needs = amounts.total(found[: max(lacking, 0)])
    if not needs and lacking > 0 and facts.group:
        needs = amounts.read((facts.group.get("spec") or {}).get("minResources"))
    return {name: amount for name, amount in needs.items() if amount > 0}


def _missing(facts: Facts) -> list[tuple[Obj, int]]:
    """Return the tasks, and how many pods of each do not exist yet."""
    return [
        (task, max(replicas_of(task) - sum(_task_of(pod) == name for pod in facts.pods), 0))
        for name, task in tasks_of(facts.job or {}).items()
    ]


def _short(tasks: Mapping[str, Obj], of_group: Obj, minimum: int, failed: Sequence[Obj]) -> list[str]:
    given = of_group.get("minTaskMember")
    least = {name: int((given or {}).get(name, 0)) if given else least_of(task) for name, task in tasks.items()}
    if minimum < sum(least.values()):  # then the plugin gang does not look at single tasks
        return []
    gone = {name: sum(_task_of(pod) == name for pod in failed) for name in tasks}
    return [name for name, task in tasks.items() if gone[name] and replicas_of(task) - gone[name] < least[name]]


def _task_of(pod: Obj) -> str:
    metadata = pod["metadata"]
    found = (metadata.get("annotations") or {}).get(keys.TASK_SPEC) or (metadata.get("labels") or {}).get(
        keys.TASK_SPEC
    )
    return str(found or "")
