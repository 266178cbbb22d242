"""What a simulated cluster is given to do."""

from collections.abc import Sequence
from dataclasses import dataclass

from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup


@dataclass(frozen=True, slots=True)
class Work:
    """The pods of one job and how long they run.

    ``together``: the job works once as many of its pods run as its PodGroup demands, and all end when it has worked for
    ``runtime_s``; an eviction that takes it below its minimum stops it, and its time begins anew. Otherwise every pod
    runs for itself. Without ``runtime_s`` it runs for ever. An evicted pod comes back, pending and with another uid.
    """

    name: str
    pods: Sequence[Pod]
    group: PodGroup | None = None
    runtime_s: float | None = None
    together: bool = True
    created_s: Sequence[float] = ()  # when each pod is made after the work arrived, at once without

    def __post_init__(self) -> None:
        """Refuse times of which some are missing."""
        if self.created_s and len(self.created_s) != len(self.pods):
            raise ValueError(f"work {self.name} has {len(self.pods)} pods and {len(self.created_s)} times of creation")

    @property
    def minimum(self) -> int:
        """How many of its pods must run before it works."""
        return self.group.spec.min_member if self.group is not None else 1
