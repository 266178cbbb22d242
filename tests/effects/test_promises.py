"""What may be promised, has taken effect, may be taken back, or belongs to nobody: plain functions."""

import pytest
from msgspec import structs

from volcano_py.effects.orphans import ClaimUser, Shelf, orphans
from volcano_py.effects.promises import (
    Progress,
    TakeBack,
    progress,
    taking_back_request,
    taking_back_volume,
    why_not_promised,
    why_not_this_volume,
)
from volcano_py.effects.storage import ClaimState, VolumeState, is_older
from volcano_py.model.decisions import BindClaim, ProvisionClaim
from volcano_py.model.volumes import ClaimKey, ClaimRecord, ClaimRef, VolumeRecord

BIND = BindClaim("ns", "c", "u", "v")
MAKE = ProvisionClaim("ns", "c", "u", "n1")
FREE = ClaimState("u", "5")
BOUND = ClaimState("u", "5", "v", True)
US = "volcano"
OURS = VolumeState("x", "5", "ns/c", "u", True, "Available", promised_by=US)


class Shown:
    def __init__(self, claim=FREE, volume=OURS, reaches=True):
        self._claim, self._volume, self._reaches = claim, volume, reaches

    def claim(self, namespace, name):
        return self._claim

    def volume(self, name):
        return self._volume

    def reaches(self, volume, node):
        return self._reaches


@pytest.mark.parametrize(
    ("step", "claim", "words"),
    [
        pytest.param(BIND, FREE, "", id="free"),
        pytest.param(BIND, BOUND, "", id="bound-to-this-volume"),
        pytest.param(BIND, ClaimState("u", "5", "w", True), "bound to volume w instead of v", id="bound-elsewhere"),
        pytest.param(BIND, None, "is gone", id="gone"),
        pytest.param(BIND, ClaimState("z", "5"), "was replaced", id="another-of-its-name"),
        pytest.param(BIND, ClaimState("u", "5", deleting=True), "is being deleted", id="deleting"),
        pytest.param(MAKE, FREE, "", id="nothing-asked"),
        pytest.param(MAKE, ClaimState("u", "5", selected_node="n1"), "", id="asked-already"),
        pytest.param(MAKE, ClaimState("u", "5", selected_node="n2"), "for node n2 already", id="asked-for-another"),
    ],
)
def test_why_nothing_may_be_promised_to_a_claim(step, claim, words):
    why = why_not_promised(step, claim)

    assert words in why
    assert bool(why) == bool(words)


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        pytest.param(VolumeState("x", "5"), "", id="free"),
        pytest.param(OURS, "", id="ours-already"),
        pytest.param(VolumeState("x", "5", "ns/c"), "", id="reserved-by-a-user"),
        pytest.param(VolumeState("x", "5", "ns/c", "z"), "promised to claim ns/c", id="an-older-claim-of-that-name"),
        pytest.param(VolumeState("x", "5", "ns/d", "w"), "promised to claim ns/d", id="another-claim"),
        pytest.param(VolumeState("x", "5", deleting=True), "is being deleted", id="deleting"),
        pytest.param(None, "is gone", id="gone"),
    ],
)
def test_why_a_volume_may_not_be_promised(volume, words):
    why = why_not_this_volume(BIND, volume)

    assert words in why
    assert bool(why) == bool(words)


WAIT, DONE = Progress.WAITING, Progress.DONE


@pytest.mark.parametrize(
    ("step", "shown", "expected"),
    [
        pytest.param(BIND, Shown(), WAIT, id="promised"),
        pytest.param(BIND, Shown(BOUND), DONE, id="bound"),
        pytest.param(BIND, Shown(ClaimState("u", "9", "v")), WAIT, id="not-completed"),
        pytest.param(BIND, Shown(volume=VolumeState("x", "3")), WAIT, id="the-watch-is-late"),
        pytest.param(BIND, Shown(volume=VolumeState("x", "9")), "no longer promised", id="taken-away"),
        pytest.param(BIND, Shown(volume=None), "is gone", id="volume-gone"),
        pytest.param(BIND, Shown(claim=None), "is gone", id="claim-gone"),
        pytest.param(MAKE, Shown(ClaimState("u", "5", selected_node="n1")), WAIT, id="asked"),
        pytest.param(MAKE, Shown(ClaimState("u", "4")), WAIT, id="the-watch-does-not-show-it-yet"),
        pytest.param(MAKE, Shown(ClaimState("u", "6")), "has refused", id="refused"),
        pytest.param(MAKE, Shown(ClaimState("u", "6", selected_node="n2")), "for node n2 instead", id="changed"),
        pytest.param(MAKE, Shown(BOUND), DONE, id="made"),
        pytest.param(MAKE, Shown(BOUND, reaches=None), WAIT, id="made-and-not-shown-yet"),
        pytest.param(MAKE, Shown(BOUND, reaches=False), "node n1 cannot reach volume v", id="made-elsewhere"),
        pytest.param(MAKE, Shown(ClaimState("u", "6", "v")), WAIT, id="being-bound"),
    ],
)
def test_how_far_a_step_is(step, shown, expected):
    how = progress(step, "5", "n1", shown)

    assert how is expected if isinstance(expected, Progress) else expected in str(how)


@pytest.mark.parametrize(
    ("volume", "claim", "expected"),
    [
        pytest.param(OURS, FREE, TakeBack.NOW, id="promised"),
        pytest.param(OURS, BOUND, TakeBack.NOTHING, id="bound"),
        pytest.param(OURS, ClaimState("u", "5", "v"), TakeBack.NOTHING, id="being-bound-by-the-claim"),
        pytest.param(structs.replace(OURS, phase="Bound"), FREE, TakeBack.LATER, id="volume-bound-first"),
        pytest.param(structs.replace(OURS, promised_by=""), FREE, TakeBack.NOTHING, id="promised-by-somebody"),
        pytest.param(structs.replace(OURS, promised_by="other"), FREE, TakeBack.NOTHING, id="promised-by-another"),
        pytest.param(OURS, ClaimState("u", "5", "w", True), TakeBack.NOW, id="claim-bound-elsewhere"),
        pytest.param(OURS, None, TakeBack.NOW, id="claim-gone"),
        pytest.param(VolumeState("x", "5", "ns/d", "w", True), FREE, TakeBack.NOTHING, id="promised-to-another"),
        pytest.param(VolumeState("x", "5", "ns/c", "w", True), FREE, TakeBack.NOTHING, id="another-of-that-name"),
        pytest.param(VolumeState("x", "5"), FREE, TakeBack.NOTHING, id="not-promised"),
        pytest.param(None, FREE, TakeBack.NOTHING, id="volume-gone"),
    ],
)
def test_what_to_take_back_of_a_volume(volume, claim, expected):
    assert taking_back_volume(BIND, volume, claim, US) is expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(ClaimState("u", "5", selected_node="n1", promised_by=US), TakeBack.NOW, id="asked"),
        pytest.param(ClaimState("u", "5", selected_node="n1"), TakeBack.NOTHING, id="asked-by-somebody"),
        pytest.param(ClaimState("u", "5", selected_node="n1", promised_by="x"), TakeBack.NOTHING, id="asked-by-x"),
        pytest.param(ClaimState("u", "5", selected_node="n2", promised_by=US), TakeBack.NOTHING, id="another-node"),
        pytest.param(ClaimState("u", "5", "v", selected_node="n1"), TakeBack.NOTHING, id="being-bound"),
        pytest.param(ClaimState("w", "5", selected_node="n1"), TakeBack.NOTHING, id="another-of-that-name"),
        pytest.param(FREE, TakeBack.NOTHING, id="not-asked"),
        pytest.param(None, TakeBack.NOTHING, id="gone"),
    ],
)
def test_what_to_take_back_of_a_request(claim, expected):
    assert taking_back_request(MAKE, claim, US) is expected


def test_versions_are_compared_as_numbers():
    assert is_older("9", "10")
    assert not is_older("10", "9")
    assert is_older("a", "b")
    assert not is_older("b", "b")


# Orphans

WAITS = ClaimUser("p", waits_for_us=True, live=False)
LIVE = ClaimUser("p", waits_for_us=True, live=True)
THEIRS = ClaimUser("q", waits_for_us=False, live=False)
ASKED = ClaimRecord("ns", "c", "u", storage_class="wait", selected_node="n1")
ASKED_BY_US = ClaimRecord("ns", "c", "u", storage_class="wait", selected_node="n1", promised_by="volcano")
UNBOUND = ClaimRecord("ns", "c", "u", storage_class="wait")
PROMISED = VolumeRecord("v", claim=ClaimRef("ns", "c", "u"), bound_by_controller=True, phase="Available")
PROMISED_BY_US = VolumeRecord(
    "v", claim=ClaimRef("ns", "c", "u"), bound_by_controller=True, phase="Available", promised_by="volcano"
)
RELEASED = VolumeRecord("v", claim=ClaimRef("ns", "c", "u"), phase="Released", promised_by="volcano")
RESERVED = VolumeRecord("v", claim=ClaimRef("ns", "c", "u"), phase="Available")
BEING_BOUND = VolumeRecord("v", claim=ClaimRef("ns", "c", "u"), bound_by_controller=True, phase="Bound")
NO_CLASS = ClaimRecord("ns", "c", "u", storage_class="gone")
IMMEDIATE = ClaimRecord("ns", "c", "u", storage_class="immediate")


@pytest.mark.parametrize(
    ("claims", "volumes", "users", "expected"),
    [
        pytest.param([ASKED_BY_US], [], [WAITS], [MAKE], id="a-request-for-a-pod-that-waits"),
        pytest.param([ASKED], [], [WAITS], [], id="it-may-be-another-schedulers-whose-waiting-pods-nobody-shows"),
        pytest.param([ASKED_BY_US], [], [LIVE], [], id="a-live-bind"),
        pytest.param([ASKED_BY_US], [], [WAITS, LIVE], [], id="one-of-two-pods-has-a-live-bind"),
        pytest.param([ASKED_BY_US], [], [WAITS, THEIRS], [], id="another-scheduler-or-a-pod-on-a-node"),
        pytest.param([ASKED], [], [], [], id="nobody-uses-it-and-nobody-says-that-it-is-ours"),
        pytest.param([ASKED_BY_US], [], [], [MAKE], id="nobody-uses-it-and-it-is-ours"),
        pytest.param([ASKED_BY_US], [], [THEIRS], [], id="ours-before-and-theirs-now"),
        pytest.param([UNBOUND], [PROMISED_BY_US], [WAITS], [BIND], id="a-volume-for-a-pod-that-waits"),
        pytest.param([UNBOUND], [PROMISED], [WAITS], [], id="a-volume-that-may-be-another-schedulers"),
        pytest.param([UNBOUND], [PROMISED_BY_US], [LIVE], [], id="a-volume-for-a-live-bind"),
        pytest.param([NO_CLASS], [PROMISED_BY_US], [WAITS], [BIND], id="its-class-is-gone"),
        pytest.param([UNBOUND], [RESERVED], [WAITS], [], id="a-user-has-reserved-it"),
        pytest.param([UNBOUND], [BEING_BOUND], [WAITS], [], id="the-volume-controller-is-binding"),
        pytest.param([IMMEDIATE], [PROMISED], [WAITS], [], id="a-class-that-binds-at-once"),
        pytest.param([ASKED], [PROMISED], [LIVE], [], id="made-for-a-live-bind"),
        pytest.param([], [PROMISED], [], [], id="the-claim-is-gone-and-nobody-says-that-it-is-ours"),
        pytest.param([], [PROMISED_BY_US], [], [BIND], id="the-claim-is-gone-and-it-is-ours"),
        pytest.param([], [RELEASED], [], [], id="a-released-volume-may-contain-data"),
    ],
)
def test_promises_that_belong_to_nobody(claims, volumes, users, expected):
    by_key = {(claim.namespace, claim.name): claim for claim in claims}
    shelf = Shelf(
        claims,
        volumes,
        lambda namespace, name: by_key.get((namespace, name)),
        lambda name: name == "wait",
        lambda step: False,
    )

    assert orphans(shelf, lambda keys: dict.fromkeys(keys, users), "volcano") == expected


def test_a_promise_that_a_bind_under_way_needs_is_not_looked_at():
    def users_of(keys: frozenset[ClaimKey]) -> dict[ClaimKey, list[ClaimUser]]:
        raise AssertionError("there is nothing to judge")

    shelf = Shelf([ASKED], [], lambda namespace, name: ASKED, lambda name: True, lambda step: step == MAKE)

    assert orphans(shelf, users_of, "volcano") == []
