"""Claims of a job: the same names after every restart of the controller, and nothing is created twice."""

import re
from typing import Any

import msgspec
import pytest

from tests.controllers.job.builders import NOW, UID, a_ready_job
from tests.controllers.job.world import World
from volcano_py.api.batch import Job
from volcano_py.controllers.job.volumes import Claim, claim_name, leaving_claim, missing_claims, mounts, name_claims
from volcano_py.controllers.writes import Create, JsonPatch

NAMED = {"mountPath": "/a", "volumeClaimName": "data"}
OWN = {
    "mountPath": "/b",
    "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def job_with(*volumes: Any, uid: str = UID) -> Job:
    return a_ready_job(volumes=list(volumes), meta={"uid": uid, "resourceVersion": "7"})


def test_a_generated_name_is_always_the_same_for_a_job_and_differs_between_jobs_and_volumes() -> None:
    job = job_with(OWN, OWN)
    names = [claim_name(job, 0), claim_name(job, 1)]

    assert all(re.fullmatch(r"train-pvc-[0-9a-z]{12}", name) for name in names)
    assert names == [claim_name(job_with(OWN, OWN), index) for index in (0, 1)]
    assert len({*names, claim_name(job_with(OWN, uid="another"), 0)}) == 3


def test_generated_names_are_written_into_the_job_of_this_version() -> None:
    job = job_with(NAMED, OWN)

    written = name_claims(job)

    assert isinstance(written, JsonPatch)
    assert written.operations == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/spec/volumes/1/volumeClaimName", "value": claim_name(job, 1)},
    ]


def test_a_job_whose_volumes_all_have_names_is_not_written() -> None:
    job = job_with(OWN)
    assert name_claims(job_with(NAMED)) is None
    assert name_claims(job_with()) is None
    assert name_claims(job_with({**OWN, "volumeClaimName": claim_name(job, 0)})) is None


def test_a_claim_that_the_job_describes_is_created_and_belongs_to_it() -> None:
    job = job_with(OWN)
    (made,) = missing_claims(job, {})

    assert isinstance(made, Create)
    body: Any = made.body
    assert body["spec"] == OWN["volumeClaim"]
    assert (body["metadata"]["name"], body["metadata"]["namespace"]) == (claim_name(job, 0), "ns")
    assert [owner["uid"] for owner in body["metadata"]["ownerReferences"]] == [UID]


def test_a_claim_that_only_has_a_name_must_exist() -> None:
    assert list(missing_claims(job_with(NAMED), {})) == ["data"]
    assert list(missing_claims(job_with(NAMED), {"other/data": None})) == ["data"]
    assert list(missing_claims(job_with(NAMED), {"ns/data": None})) == []


def test_a_claim_that_exists_is_not_created_again_and_a_name_counts_once() -> None:
    job = job_with(OWN, NAMED, NAMED)

    assert list(missing_claims(job, {f"ns/{claim_name(job, 0)}": None})) == ["data"]


def a_claim(owner: str = "", job: str = "train", deleting: bool = False) -> Claim:
    reference = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job,
        "uid": owner,
        "controller": True,
    }
    meta = {"name": "data", "ownerReferences": [reference] if owner else []}
    return msgspec.convert({"metadata": meta | ({"deletionTimestamp": NOW} if deleting else {})}, Claim)


@pytest.mark.parametrize(
    ("claim", "leaves"),
    [
        pytest.param(a_claim(), False, id="of-nobody"),
        pytest.param(a_claim(UID), False, id="of-the-job"),
        pytest.param(a_claim("another", job="other"), False, id="shared-by-another-job"),
        pytest.param(a_claim("another"), True, id="of-an-earlier-job-of-this-name"),
        pytest.param(a_claim(deleting=True), True, id="being-deleted"),
    ],
)
@pytest.mark.parametrize("volume", [NAMED, {**OWN, "volumeClaimName": "data"}])
def test_a_job_waits_for_the_end_of_a_claim_that_will_be_gone(volume: Any, claim: Claim, leaves: bool) -> None:
    """A claim of an earlier job of the same name goes with that job, after the new job has seen it."""
    world = World(job_with(volume))
    world.claims["ns/data"] = claim
    world.settle()

    assert world.job.status.state.reason == ("ClaimNotFound" if leaves else "Created")
    assert (world.group is None) is leaves
    if leaves:
        assert leaving_claim(world.job, world.claims) == world.job.status.state.message
        del world.claims["ns/data"]
        world.settle()
        assert (world.group is not None) is ("volumeClaim" in volume)


def test_a_claim_with_name_and_description_is_created_under_that_name() -> None:
    (made,) = missing_claims(job_with({**OWN, "volumeClaimName": "mine"}), {})

    assert isinstance(made, Create)
    body: Any = made.body
    assert body["metadata"]["name"] == "mine"


@pytest.mark.parametrize("before", [True, False], ids=["before-naming", "after-naming"])
def test_pods_mount_the_same_volume_before_and_after_the_name_is_written(before: bool) -> None:
    job = job_with(OWN)
    if not before:
        volumes = [{**OWN, "volumeClaimName": claim_name(job, 0)}]
        job = msgspec.structs.replace(job, spec=a_ready_job(volumes=volumes).spec)

    (mount,) = mounts(job)

    assert (mount.claim, mount.path) == (claim_name(job_with(OWN), 0), "/b")
    assert mount == mounts(job_with(OWN))[0]
    assert re.fullmatch(r"train-[0-9a-z]{12}", mount.volume)
