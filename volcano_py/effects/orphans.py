"""Promises that belong to nobody: what a scheduler that was killed has left, or what could not be undone.

Only what a scheduler has promised for pods of ours counts, and only while nobody works on it:

- the claim waits for its first consumer and is not bound, nor is the volume controller binding it,
- all pods that use it wait and are ours, and none of them has a live bind,
- or no pod uses it, and the annotation ``volcano.sh/promised-by`` says that the promise is ours.

So a promise for a pod of another scheduler, a claim of a class that binds at once, and a volume that a user has
reserved are left alone.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from volcano_py.effects.promises import USED_PHASES
from volcano_py.model.decisions import BindClaim, PrepareStep, ProvisionClaim
from volcano_py.model.volumes import ClaimKey, ClaimRecord, VolumeRecord


class ClaimUser(NamedTuple):
    """A pod that uses a claim and has not ended."""

    uid: str
    waits_for_us: bool  # it has no node, and our scheduler is to find one
    live: bool  # a bind of ours is assumed


class Shelf(NamedTuple):
    """What the watch shows of storage, and of those who use it."""

    claims: Collection[ClaimRecord]
    volumes: Collection[VolumeRecord]
    claim: Callable[[str, str], ClaimRecord | None]
    delays_binding: Callable[[str], bool]
    """Says whether the claims of a storage class wait for their first consumer."""
    needed: Callable[[PrepareStep], bool]
    """Says whether a bind that is under way has a step."""


Users = Callable[[frozenset[ClaimKey]], dict[ClaimKey, list[ClaimUser]]]
"""Finds the users of some claims."""


def orphans(shelf: Shelf, users_of: Users, owner: str) -> list[PrepareStep]:
    """Return the promises that belong to nobody: of volumes, then to claims; ``owner`` is our scheduler's name."""
    found = [(step, by) for step, by in (*_volumes(shelf, owner), *_claims(shelf, owner)) if not shelf.needed(step)]
    if not found:
        return []
    users = users_of(frozenset(ClaimKey(step.namespace, step.claim) for step, _ in found))
    abandoned = [
        step for step, by in found if _nobody_needs_it(users.get(ClaimKey(step.namespace, step.claim), ()), by == owner)
    ]
    return sorted(abandoned, key=lambda step: (type(step).__name__, step.namespace, step.claim, step.claim_uid))


def _claims(shelf: Shelf, owner: str) -> Iterator[tuple[PrepareStep, str]]:
    for claim in shelf.claims:
        if claim.selected_node and _waits(claim, shelf, claim.promised_by == owner):
            step = ProvisionClaim(claim.namespace, claim.name, claim.uid, claim.selected_node)
            yield step, claim.promised_by


def _volumes(shelf: Shelf, owner: str) -> Iterator[tuple[PrepareStep, str]]:
    for volume in shelf.volumes:
        ref = volume.claim
        if ref is None or not ref.uid or not (volume.bound_by_controller or volume.promised_by):
            continue
        claim = shelf.claim(ref.namespace, ref.name)
        step = BindClaim(ref.namespace, ref.name, ref.uid, volume.name)
        if claim is None or claim.uid != ref.uid:
            if volume.promised_by and volume.phase not in USED_PHASES:
                yield step, volume.promised_by
        elif (
            _waits(claim, shelf, volume.promised_by == owner)
            and not claim.selected_node
            and volume.phase not in USED_PHASES
        ):
            yield step, volume.promised_by


def _waits(claim: ClaimRecord, shelf: Shelf, ours: bool) -> bool:
    """Say whether a claim is unbound until a scheduler promises something to it, as we have if the promise is ours."""
    return not claim.volume and (ours or shelf.delays_binding(claim.storage_class))


def _nobody_needs_it(users: Iterable[ClaimUser], ours: bool) -> bool:
    # Pods of other schedulers that wait are not known here. So only a promise that says that it is ours is judged.
    return ours and all(user.waits_for_us and not user.live for user in users)
