"""What assumed binds promise: volumes to claims, and claims to nodes.

A promise counts in every snapshot from the moment when its bind is assumed. It ends when the watch shows the claim
bound, or when the bind ends without its pod on the node. So no volume is promised twice, and none stays promised.
"""

from volcano_py.ledger.ledger import Ledger
from volcano_py.model.decisions import Bind, BindClaim, PrepareStep
from volcano_py.model.statuses import TaskStatus
from volcano_py.model.volumes import ClaimKey, ClaimRef
from volcano_py.snapshot.store import ClusterStore


class VolumePromises:
    """The promises of assumed binds, by uid of the pod."""

    def __init__(self, store: ClusterStore, ledger: Ledger) -> None:
        self._store = store
        self._volumes = store.volumes
        self._ledger = ledger
        self._promises: dict[str, tuple[PrepareStep, ...]] = {}

    def __len__(self) -> int:
        return len(self._promises)

    def objection(self, bind: Bind) -> str:
        """Return why the bind cannot be prepared as it was decided, "" if it can."""
        for step in bind.prepare:
            reason = self._objection(step)
            if reason:
                return reason
        return ""

    def _objection(self, step: PrepareStep) -> str:
        key = ClaimKey(step.namespace, step.claim)
        claim = self._volumes.claim(key)
        if claim is None or claim.uid != step.claim_uid:
            return f"claim {key} is gone"
        if claim.deleting:
            return f"claim {key} is being deleted"
        if not isinstance(step, BindClaim):
            if claim.volume:
                return f"claim {key} has got volume {claim.volume} meanwhile"
            if claim.selected_node not in ("", step.node):
                return f"claim {key} gets its volume for node {claim.selected_node}"
            return ""
        if claim.volume not in ("", step.volume):
            return f"claim {key} has got volume {claim.volume} meanwhile"
        volume = self._volumes.volume(step.volume)
        if volume is None or volume.deleting:
            return f"volume {step.volume} is gone"
        owner = volume.claim
        if owner is not None and (owner[:2] != key or owner.uid not in ("", claim.uid)):
            return f"volume {step.volume} has been promised to claim {owner.namespace}/{owner.name}"
        return ""

    def add(self, bind: Bind) -> None:
        """Count what an assumed bind promises."""
        if not bind.prepare:
            return
        self._promises[bind.task.uid] = bind.prepare
        for step in bind.prepare:
            if isinstance(step, BindClaim):
                self._volumes.promise_volume(step.volume, ClaimRef(step.namespace, step.claim, step.claim_uid))
            else:
                self._volumes.promise_node(ClaimKey(step.namespace, step.claim), step.node)

    def drop(self, uid: str) -> None:
        """Forget what a bind promised, because it has ended without its pod on the node."""
        self._keep(uid, ())

    def prune(self) -> None:
        """Forget the promises that have ended."""
        # A Python loop over the binds that are being prepared or have just been confirmed.
        for uid in list(self._promises):
            if self._ledger.get(uid) is None:
                self._keep(uid, self._still_open(uid))

    def _still_open(self, uid: str) -> tuple[PrepareStep, ...]:
        """Return the steps of a bind that has ended whose claims the watch does not show bound yet."""
        place = self._store.task(uid)
        if place is None or not place.node or place.status is TaskStatus.BINDING:
            return ()
        return tuple(step for step in self._promises[uid] if not self._done(step))

    def _done(self, step: PrepareStep) -> bool:
        claim = self._volumes.claims.get(ClaimKey(step.namespace, step.claim))
        return claim is None or claim.uid != step.claim_uid or claim.bound

    def _keep(self, uid: str, steps: tuple[PrepareStep, ...]) -> None:
        ended = set(self._promises.pop(uid, ())) - set(steps)
        if steps:
            self._promises[uid] = steps
        if ended:
            ended -= {step for others in self._promises.values() for step in others}  # of pods that share a claim
        for step in sorted(ended, key=lambda step: (step.namespace, step.claim)):
            if isinstance(step, BindClaim):
                self._volumes.end_volume_promise(step.volume)
            else:
                self._volumes.end_node_promise(ClaimKey(step.namespace, step.claim))

    def validate(self) -> None:
        """Raise AssertionError if a promise has no bind, or the store has others."""
        self.prune()
        promised = {step for steps in self._promises.values() for step in steps}
        volumes = {step.volume for step in promised if isinstance(step, BindClaim)}
        claims = {ClaimKey(step.namespace, step.claim) for step in promised if not isinstance(step, BindClaim)}
        if (volumes, claims) != self._volumes.promised():
            raise AssertionError(f"binds promise {volumes} and {claims}, the store has {self._volumes.promised()}")
