"""The work of a simulated cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup


@dataclass(frozen=True, slots=True)
class Work:
    """The pods of one job and how long they run.

    With ``together``, the job works while the minimum of its PodGroup runs, and all pods end when it has worked for
    ``runtime_s``. An eviction below the minimum stops it, and its time starts again. Without ``together``, every pod
    runs on its own. Without ``runtime_s``, pods run for ever. An evicted pod comes back, pending and with another uid.
    """

    name: str
    pods: Sequence[Pod]
    group: PodGroup | None = None
    runtime_s: float | None = None
    together: bool = True
    created_s: Sequence[float] = ()  # creation of each pod after the arrival of the work; empty: at once

    def __post_init__(self) -> None:
        """Raise ValueError if the number of creation times is not the number of pods."""
        if self.created_s and len(self.created_s) != len(self.pods):
            raise ValueError(f"work {self.name} has {len(self.pods)} pods and {len(self.created_s)} times of creation")

    @property
    def minimum(self) -> int:
        """The number of pods that must run before the job works."""
        return self.group.spec.min_member if self.group is not None else 1
