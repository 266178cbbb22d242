"""What assumed binds promise: it counts at once, and ends when the watch shows it or the bind ends."""

from typing import Any

import pytest

from volcano_py.cache.binds import Assumed, Refused
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.feeding import prepared
from volcano_py.cache.volumes import CLAIM, VOLUME, VolumeChange
from volcano_py.model.decisions import Bind, BindClaim, PrepareStep, ProvisionClaim
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.volumes import ClaimRef
from volcano_py.testing import a_cluster, a_group, a_node, a_pod, added, deleted, modified
from volcano_py.testing.storage import a_claim, a_local_class, a_storage_class, a_volume, with_claims

CLAIMED = BindClaim("default", "c0", "uid-claim-default-c0", "v0")
MADE = ProvisionClaim("default", "c1", "uid-claim-default-c1", "n1")


def a_world(**options: Any) -> ClusterCache:
    """Return a cluster in which p0 may get v0 for its claim c0, and a volume is made for the claim c1 of p1."""
    return a_cluster(
        a_node("n1"),
        a_node("n2"),
        a_local_class(),
        a_storage_class(),
        a_volume("v0", storage_class="local"),
        a_claim("c0", storage_class="local"),
        a_claim("c1"),
        a_group("g", min_available=1),
        a_pod("p0", group="g", cpu=1, spec=with_claims("c0")),
        a_pod("p1", group="g", cpu=1, spec=with_claims("c1")),
        a_pod("p2", group="g", cpu=1, spec=with_claims("c0")),
        **options,
    )


def a_bind(pod: str, *steps: PrepareStep, node: str = "n1") -> Bind:
    return Bind(TaskRef("default", pod, f"uid-default-{pod}"), node, JobKey("default", "g"), steps)


def assume(cache: ClusterCache, *binds: Bind) -> list[Assumed | Refused]:
    return cache.binds.assume(binds, cache.token)


def free_volumes(cache: ClusterCache) -> list[str]:
    found = cache.snapshot().volumes
    assert found is not None
    columns = found.columns
    return sorted(one.name for row, one in enumerate(columns.records) if one is not None and columns.free[row])


def selected(cache: ClusterCache, pod: str) -> str:
    """Return the node that is selected for the only unbound claim of a waiting pod."""
    snapshot = cache.snapshot()
    assert snapshot.volumes is not None
    row = next(row for row, one in enumerate(snapshot.tasks.records) if one is not None and one.name == pod)
    (wanted,) = snapshot.volumes.needs[int(snapshot.volumes.need[row])].wanted
    return wanted.selected_node


def test_a_promised_volume_is_not_free_for_the_next_cycle() -> None:
    cache = a_world()
    assert free_volumes(cache) == ["v0"]

    assert assume(cache, a_bind("p0", CLAIMED)) == [Assumed(a_bind("p0", CLAIMED))]

    assert free_volumes(cache) == []
    assert cache.store.volumes.reserved(cache.store.volumes.claims["default", "c0"]) == ("v0",)  # type: ignore[index]
    cache.validate()


@pytest.mark.parametrize("how", ["failed", "withdrawn"])
def test_a_bind_that_ends_without_its_pod_gives_the_volume_back(how: str) -> None:
    cache = a_world()
    assume(cache, a_bind("p0", CLAIMED))

    getattr(cache.binds, how)(a_bind("p0").task, "the API server said no")

    assert free_volumes(cache) == ["v0"]
    cache.validate()


def test_a_pod_that_is_deleted_meanwhile_gives_the_volume_back() -> None:
    cache = a_world()
    assume(cache, a_bind("p0", CLAIMED))

    deleted(cache, a_pod("p0", group="g", cpu=1, spec=with_claims("c0")))

    assert free_volumes(cache) == ["v0"]
    cache.validate()


def test_a_promise_lasts_until_the_watch_shows_the_claim_bound() -> None:
    cache = a_world()
    assume(cache, a_bind("p0", CLAIMED))
    cache.binds.acknowledged(a_bind("p0").task)

    modified(cache, a_pod("p0", group="g", cpu=1, node="n1", spec=with_claims("c0")))  # before the claim's event

    assert free_volumes(cache) == []
    assert len(cache.binds.promises) == 1
    free = a_volume("v0", storage_class="local")
    claim, volume = prepared(cache, CLAIMED, a_claim("c0", storage_class="local"), free)
    modified(cache, volume, claim)
    cache.snapshot()
    assert len(cache.binds.promises) == 0
    assert cache.volumes.volume("v0") == cache.store.volumes.volume("v0")
    cache.validate()


def test_a_promised_node_is_the_selected_node_of_every_pod_with_the_claim() -> None:
    cache = a_world()
    added(cache, a_pod("p3", group="g", cpu=1, spec=with_claims("c1")))

    assume(cache, a_bind("p1", MADE))

    assert selected(cache, "p3") == "n1"
    cache.binds.failed(a_bind("p1").task, "the provisioner refused")
    assert selected(cache, "p3") == ""
    cache.validate()


def test_a_promise_that_two_binds_share_lasts_as_long_as_one_of_them() -> None:
    cache = a_world()
    assume(cache, a_bind("p0", CLAIMED), a_bind("p2", CLAIMED))

    cache.binds.failed(a_bind("p0").task, "no")
    assert free_volumes(cache) == []

    cache.binds.failed(a_bind("p2").task, "no")
    assert free_volumes(cache) == ["v0"]
    cache.validate()


@pytest.mark.parametrize(
    ("change", "step", "reason"),
    [
        pytest.param(
            lambda cache: deleted(cache, a_claim("c0", storage_class="local")),
            CLAIMED,
            "claim default/c0 is gone",
            id="claim-gone",
        ),
        pytest.param(
            lambda cache: modified(cache, a_claim("c0", storage_class="local", terminating=True)),
            CLAIMED,
            "claim default/c0 is being deleted",
            id="claim-deleting",
        ),
        pytest.param(
            lambda cache: modified(cache, a_claim("c0", storage_class="local", volume="other")),
            CLAIMED,
            "claim default/c0 has got volume other meanwhile",
            id="claim-bound",
        ),
        pytest.param(lambda cache: deleted(cache, a_volume("v0")), CLAIMED, "volume v0 is gone", id="volume-gone"),
        pytest.param(
            lambda cache: modified(cache, a_volume("v0", storage_class="local", claim="elsewhere/c", claim_uid="u")),
            CLAIMED,
            "volume v0 has been promised to claim elsewhere/c",
            id="volume-taken",
        ),
        pytest.param(
            lambda cache: modified(cache, a_claim("c1", selected_node="n2")),
            MADE,
            "claim default/c1 gets its volume for node n2",
            id="other-node",
        ),
    ],
)
def test_a_bind_is_refused_if_its_claim_or_volume_is_not_free_any_more(
    change: Any, step: PrepareStep, reason: str
) -> None:
    cache = a_world()
    bind = a_bind("p0" if step is CLAIMED else "p1", step)
    change(cache)

    assert assume(cache, bind) == [Refused(bind, reason)]
    assert len(cache.binds.promises) == 0
    cache.validate()


def test_a_volume_that_an_assumed_bind_promises_is_refused_to_another_claim() -> None:
    cache = a_world()
    added(cache, a_claim("c9", storage_class="local"), a_pod("p9", group="g", cpu=1, spec=with_claims("c9")))
    assume(cache, a_bind("p0", CLAIMED))
    other = a_bind("p9", BindClaim("default", "c9", "uid-claim-default-c9", "v0"))

    assert assume(cache, other) == [Refused(other, "volume v0 has been promised to claim default/c0")]


def test_changes_of_claims_and_volumes_are_told_with_what_is_known_then() -> None:
    cache = a_world()
    told: list[tuple[VolumeChange, object]] = []

    def note(change: VolumeChange) -> None:
        known = cache.volumes.claim(change.namespace, change.name) if change.kind == CLAIM else None
        told.append((change, known or cache.volumes.volume(change.name)))

    cache.volumes.on_change(note)
    free = a_volume("v0", storage_class="local")
    claim, volume = prepared(cache, CLAIMED, a_claim("c0", storage_class="local"), free)
    modified(cache, volume, claim, claim)
    deleted(cache, volume)

    assert [change for change, _ in told] == [(VOLUME, "", "v0"), (CLAIM, "default", "c0"), (VOLUME, "", "v0")]
    found = cache.volumes.claim("default", "c0")
    assert found is not None
    assert (found.bound, found.volume, found.uid) == (True, "v0", "uid-claim-default-c0")
    assert [known for _, known in told][1:] == [found, None]
    first = told[0][1]
    assert getattr(first, "claim", None) == ClaimRef("default", "c0", "uid-claim-default-c0")


def test_pods_with_claims_wait_while_storage_kinds_cannot_be_read() -> None:
    cache = a_world()
    cache.storage.absent = lambda: ["persistentvolumes"]
    found = cache.snapshot().volumes
    assert found is not None
    waits = "volume claims wait because this scheduler cannot list and watch persistentvolumes: allow it to"
    assert {need.refusal.text for need in found.needs if need.refusal is not None} == {waits}
    for need in found.needs:
        assert need.refusal == need.zone_refusal == need.limits_refusal

    cache.storage.absent = list

    found = cache.snapshot().volumes
    assert found is not None
    assert all(need.refusal is None for need in found.needs)
