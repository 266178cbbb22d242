"""What a step of a bind promises, as plain functions: may it be promised, has it taken effect, may it be taken back?

A promise is a volume's ``spec.claimRef`` to a claim that is not bound yet, or a claim's annotation ``selected-node``.
"""

from enum import Enum, auto
from typing import Final

from volcano_py.api.storage import SELECTED_NODE
from volcano_py.effects.storage import ClaimState, Storage, VolumeState, is_older
from volcano_py.model.decisions import BindClaim, PrepareStep, ProvisionClaim

BOUND_PHASE: Final = "Bound"
USED_PHASES: Final = frozenset({BOUND_PHASE, "Released", "Failed"})
"""Phases of a volume that may contain data of its claim."""


class Progress(Enum):
    """How far a step is."""

    DONE = auto()  # its claim is bound, and the node reaches the volume
    WAITING = auto()


def claim_of(step: PrepareStep) -> str:
    """Return the claim of a step as namespace/name."""
    return f"{step.namespace}/{step.claim}"


# May it be promised?


def why_not_promised(step: PrepareStep, claim: ClaimState | None) -> str:
    """Return why nothing may be promised to a claim, "" if something may."""
    why = _why_lost(step, claim)
    if claim is None or why:
        return why
    if isinstance(step, BindClaim):
        return "" if claim.volume in ("", step.volume) else _elsewhere(step, claim)
    if claim.volume or claim.selected_node in ("", step.node):
        return ""
    return f"claim {claim_of(step)} waits for a volume for node {claim.selected_node} already"


def why_not_this_volume(step: BindClaim, volume: VolumeState | None) -> str:
    """Return why a volume may not be promised to the claim, "" if it may, or is already."""
    if volume is None:
        return f"volume {step.volume} for claim {claim_of(step)} is gone"
    if volume.deleting:
        return f"volume {step.volume} for claim {claim_of(step)} is being deleted"
    if not volume.claim or (volume.claim == claim_of(step) and volume.claim_uid in ("", step.claim_uid)):
        return ""
    return f"volume {step.volume} for claim {claim_of(step)} is promised to claim {volume.claim}"


# Has it taken effect?


def progress(step: PrepareStep, version: str, node: str, storage: Storage) -> Progress | str:
    """Return how far a step is whose object had a version after the write, or why it cannot succeed any more."""
    claim = storage.claim(step.namespace, step.claim)
    why = _why_lost(step, claim)
    if claim is None or why:
        return why
    if isinstance(step, BindClaim):
        return _binding(step, claim, storage.volume(step.volume), version)
    return _provisioning(step, claim, version, storage.reaches(claim.volume, node) if claim.bound else None)


def _binding(step: BindClaim, claim: ClaimState, volume: VolumeState | None, version: str) -> Progress | str:
    if claim.bound and claim.volume == step.volume:
        return Progress.DONE
    if claim.volume not in ("", step.volume):
        return _elsewhere(step, claim)
    if volume is None:
        return f"volume {step.volume} for claim {claim_of(step)} is gone"
    if is_older(volume.version, version) or volume.claim_uid == step.claim_uid:
        return Progress.WAITING
    return f"volume {step.volume} is no longer promised to claim {claim_of(step)}"


def _provisioning(step: ProvisionClaim, claim: ClaimState, version: str, reached: bool | None) -> Progress | str:
    if claim.bound:
        if reached is False:
            return f"node {step.node} cannot reach volume {claim.volume}, to which claim {claim_of(step)} was bound"
        return Progress.DONE if reached else Progress.WAITING
    if claim.volume or claim.selected_node == step.node or is_older(claim.version, version):
        return Progress.WAITING
    if not claim.selected_node:
        return (
            f"claim {claim_of(step)} gets no volume for node {step.node}: "
            f"its provisioner has refused (it has removed the annotation {SELECTED_NODE})"
        )
    return f"claim {claim_of(step)} waits for a volume for node {claim.selected_node} instead of {step.node}"


def not_achieved(step: PrepareStep, after_s: float) -> str:
    """Return what a step has not achieved in time."""
    if isinstance(step, BindClaim):
        return f"claim {claim_of(step)} was not bound to volume {step.volume} within {after_s:g} s"
    return f"claim {claim_of(step)} got no volume for node {step.node} within {after_s:g} s"


def still_missing(step: PrepareStep) -> str:
    """Return what a step waits for."""
    if isinstance(step, BindClaim):
        return f"claim {claim_of(step)} is not bound to volume {step.volume} yet"
    return f"the provisioner of claim {claim_of(step)} has not made a volume for node {step.node} yet"


# May it be taken back?


class TakeBack(Enum):
    """What to do with a promise that nobody needs."""

    NOW = auto()
    NOTHING = auto()  # it is not there any more, or the claim is bound
    LATER = auto()  # the volume controller is binding


def taking_back_volume(step: BindClaim, volume: VolumeState | None, claim: ClaimState | None, owner: str) -> TakeBack:
    """Say whether a volume's promise to a claim is to be taken back; ``owner`` is our name, which stands beside it."""
    if volume is None or volume.claim != claim_of(step) or volume.claim_uid != step.claim_uid:
        return TakeBack.NOTHING
    if volume.promised_by != owner:
        return TakeBack.NOTHING  # somebody else has made the same promise
    if claim is None or claim.uid != step.claim_uid:
        return TakeBack.NOW
    if claim.volume == step.volume:
        return TakeBack.NOTHING
    return TakeBack.LATER if volume.phase == BOUND_PHASE and not claim.volume else TakeBack.NOW


def taking_back_request(step: ProvisionClaim, claim: ClaimState | None, owner: str) -> TakeBack:
    """Say whether the request for a volume is to be taken back; ``owner`` is our name, which stands beside it."""
    if claim is not None and claim.promised_by != owner:
        return TakeBack.NOTHING  # somebody else has asked for the same
    if claim is None or claim.uid != step.claim_uid or claim.volume or claim.selected_node != step.node:
        return TakeBack.NOTHING
    return TakeBack.NOW


def _why_lost(step: PrepareStep, claim: ClaimState | None) -> str:
    if claim is None:
        return f"claim {claim_of(step)} is gone"
    if claim.uid != step.claim_uid:
        return f"claim {claim_of(step)} was replaced by another of its name"
    return f"claim {claim_of(step)} is being deleted" if claim.deleting and not claim.bound else ""


def _elsewhere(step: BindClaim, claim: ClaimState) -> str:
    return f"claim {claim_of(step)} was bound to volume {claim.volume} instead of {step.volume}"
