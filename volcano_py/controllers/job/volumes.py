"""The volumes of a job: claims that are mounted into every container of its pods."""

import hashlib
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final, NamedTuple

from volcano_py.api.batch import Job
from volcano_py.api.meta import ObjectMeta, Wire
from volcano_py.controllers.job import objects
from volcano_py.controllers.writes import Create, JsonPatch
from volcano_py.kube.resource import PERSISTENT_VOLUME_CLAIMS, VCJOBS

_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 12


class Claim(Wire, frozen=True):
    """A PersistentVolumeClaim; whether it exists and stays is all that matters."""

    metadata: ObjectMeta


class Mount(NamedTuple):
    """A claim, the path it is mounted at, and the name of its volume in the pod."""

    claim: str
    path: str
    volume: str


def claim_name(job: Job, index: int) -> str:
    """Return the name of the claim of volume ``index``; one that the job does not name is derived from its uid.

    The same job always gets the same name, so a claim is never created twice.
    """
    given = job.spec.volumes[index].volume_claim_name
    return given or f"{job.metadata.name}-pvc-{_code(job, 'claim', str(index))}"


def mounts(job: Job) -> list[Mount]:
    """Return what the containers of a job mount. Of two volumes with the same claim, both paths are mounted."""
    found: list[Mount] = []
    for index, volume in enumerate(job.spec.volumes):
        claim = claim_name(job, index)
        found.append(Mount(claim, volume.mount_path, f"{job.metadata.name}-{_code(job, 'volume', claim)}"))
    return found


def name_claims(job: Job) -> JsonPatch | None:
    """Return the patch that writes the derived names of claims into the job, None if every volume has a name."""
    meta = job.metadata
    body: list[dict[str, Any]] = [
        {"op": "add", "path": f"/spec/volumes/{index}/volumeClaimName", "value": claim_name(job, index)}
        for index, volume in enumerate(job.spec.volumes)
        if not volume.volume_claim_name
    ]
    if not body:
        return None
    version = {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version}
    return JsonPatch(VCJOBS, meta.namespace, meta.name, [version, *body])


def missing_claims(job: Job, existing: Container[str]) -> Iterator[Create | str]:
    """Yield, for each claim that does not exist, its creation, or its name if the job does not say how to create it.

    ``existing`` has the claims by namespace/name.
    """
    meta = job.metadata
    seen: set[str] = set()
    for index, volume in enumerate(job.spec.volumes):
        name = claim_name(job, index)
        if name in seen or f"{meta.namespace}/{name}" in existing:
            continue
        seen.add(name)
        if volume.volume_claim is None:
            yield name
        else:
            owner = objects.owner_reference(meta.name, meta.uid)
            body = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": meta.namespace, "ownerReferences": [owner]},
                "spec": volume.volume_claim,
            }
            yield Create(PERSISTENT_VOLUME_CLAIMS, meta.namespace, body)


def leaving_claim(job: Job, existing: Mapping[str, Claim]) -> str:
    """Return what is to be done about a claim of a job that exists and will soon be gone, "" if there is none."""
    for index, volume in enumerate(job.spec.volumes):
        key = f"{job.metadata.namespace}/{claim_name(job, index)}"
        found = existing.get(key)
        if found is None:
            continue
        meta = found.metadata
        if meta.deletion_timestamp is not None or objects.is_of_predecessor(meta, job.metadata):
            way_out = "create it again" if volume.volume_claim is None else "the controllers create it again"
            return f"PersistentVolumeClaim {key} is being deleted: {way_out} when it is gone, and the job goes on"
    return ""


def _code(job: Job, *parts: str) -> str:
    """Return twelve letters and digits that stand for a part of a job."""
    number = int.from_bytes(hashlib.sha256("/".join((job.metadata.uid, *parts)).encode()).digest())
    letters = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(letters)
