"""What happened to the pods of a job, as the server saw it: what policies must answer, each thing once."""

from collections import Counter
from dataclasses import dataclass

from tests.controllers.job.simulation import expected
from tests.controllers.job.simulation.expected import Obj


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that happened to a pod."""

    event: str
    pod: str
    uid: str
    task: str
    index: int
    partition: str
    version: int
    exit_code: int
    at: float
    phases: int
    """How many phases the job had entered."""
    lives: int
    """How many times the controller had started."""
    present: frozenset[str]
    """uids of the pods that existed."""
    remembered: bool
    """Whether a controller that starts later can know of it."""


class Causes:
    """All that happened in a run."""

    def __init__(self) -> None:
        self.all: list[Cause] = []
        self.seen: Counter[tuple[str, str]] = Counter()
        """How often each event happened, by event and pod; and by event and task."""
        self.exit_codes: dict[str, set[int]] = {}
        """By pod."""
        self.completed: set[tuple[str, int]] = set()
        """Task and index of every pod that had succeeded when somebody else than the controller took it away."""

    def add(self, cause: Cause) -> None:
        """Note a cause."""
        self.all.append(cause)
        self.count(cause.event, cause.pod)
        self.count(cause.event, f"task {cause.task}")
        if cause.event == "PodFailed":
            self.exit_codes.setdefault(cause.pod, set()).add(cause.exit_code)

    def count(self, event: str, subject: str) -> None:
        """Count an event that concerns no pod, or needs no answer of its own."""
        self.seen[event, subject] += 1


def version_of(pod: Obj) -> int:
    """Return the version of the job for which a pod was made."""
    return int(pod["metadata"]["annotations"]["volcano.sh/job-version"])


def task_of(pod: Obj) -> str:
    """Return the task of a pod."""
    return str(pod["metadata"]["annotations"]["volcano.sh/task-spec"])


def index_of(pod: Obj) -> int:
    """Return the index of a pod in its task."""
    return int(pod["metadata"]["labels"]["volcano.sh/task-index"])


def partition_of(pod: Obj) -> str:
    """Return the partition of a pod, "" if its task has none."""
    return str(pod["metadata"]["labels"].get("volcano.sh/partition-id", ""))


def answered(job: Obj, cause: Cause, pods: list[Obj]) -> str:
    """Return what is wrong if a job that rests in the version of a cause has not acted on it; "" if nothing is."""
    action, delay_s = expected.answer(job, cause.event, cause.task, cause.exit_code)
    if action in ("SyncJob", "EnqueueJob", "ResumeJob"):
        return ""
    if delay_s and cause.event != "PodFailed":
        return ""  # a pod of that name that runs again makes it void
    if action in expected.WHOLE:
        return f"{action} on {cause.event} of {cause.pod} did not happen"
    for pod in pods:
        uid = pod["metadata"]["uid"]
        if uid not in cause.present or (delay_s and uid != cause.uid):
            continue
        same = task_of(pod) == cause.task
        concerned = {
            "RestartTask": same,
            "RestartPartition": same and cause.partition and partition_of(pod) == cause.partition,
            "RestartPod": uid == cause.uid,
        }[action]
        if concerned:
            return f"{action} on {cause.event} of {cause.pod} did not reach {pod['metadata']['name']} ({uid})"
    return ""
