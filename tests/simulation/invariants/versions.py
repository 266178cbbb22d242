"""Pods of jobs are made for the version that their job has."""

from bisect import bisect_left
from typing import TYPE_CHECKING

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from volcano_py.api import keys
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World


class PodsOfThePresent(Invariant):
    """No pod is made for a version that its job had left when the request was sent; nor does a PodGroup stay of one.

    The controller writes a new version before it acts, so it knows it. Only a list of an older state may hide it.
    """

    name = "versions of jobs are kept"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._accepted: dict[str, list[tuple[int, float]]] = {}  # by uid of the job: version, since when

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Follow the versions of jobs, and look at new pods."""
        obj, meta = event.stored.obj, event.stored.obj["metadata"]
        if resource == objects.JOBS:
            accepted = self._accepted.setdefault(meta["uid"], [])
            version = obj.get("status", {}).get("version", 0)
            if not accepted or accepted[-1][0] < version:
                accepted.append((version, self.world.loop.time()))
        elif resource == objects.PODS and event.type == "ADDED" and asked is not None:
            made_for = meta.get("annotations", {}).get(keys.JOB_VERSION)
            for owner in meta.get("ownerReferences", []):
                if made_for is not None and owner["uid"] in self._accepted:
                    self._look(event.stored.key, int(made_for), self._accepted[owner["uid"]], asked)

    def _look(self, key: str, made_for: int, accepted: list[tuple[int, float]], asked: "Asked") -> None:
        later = accepted[bisect_left(accepted, made_for + 1, key=lambda each: each[0]) :]
        if later and later[0][1] < asked.sent_at and not self.world.servers.stale_lists_in_force():
            ago = asked.sent_at - later[0][1]
            self.violated(
                f"pod {key} is made for version {made_for}, {ago:.3f} s after its job had version {later[0][0]}"
            )

    def at_rest(self) -> None:
        """Look at the PodGroups of jobs: a restart of the whole job makes a new one, which queues again."""
        versions = {
            job["metadata"]["uid"]: job.get("status", {}).get("version", 0)
            for job in self.world.servers.objects(objects.JOBS)
        }
        for group in self.world.servers.objects(objects.GROUPS):
            made_for = group["metadata"].get("annotations", {}).get(keys.JOB_VERSION)
            for owner in group["metadata"].get("ownerReferences", []):
                if made_for is not None and versions.get(owner["uid"], 0) > int(made_for):
                    name = group["metadata"]["name"]
                    self.violated(f"PodGroup {name} is of version {made_for}, its job of {versions[owner['uid']]}")
