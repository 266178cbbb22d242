"""A whole pod template."""

from functools import lru_cache
from typing import Final

import msgspec

from volcano_py.admission.contract import Obj, Refusal
from volcano_py.admission.pod_rules import containers, metadata, placement, resources, security, volumes
from volcano_py.admission.pod_rules import spec as pod
from volcano_py.admission.pod_rules.flaws import Flaws
from volcano_py.admission.reading import part


def template_flaws(template: Obj, path: str, pod_level_resources: bool) -> tuple[Refusal, ...]:
    """Return what is wrong with a pod template, each with its path and the API server's words after it."""
    return tuple(_flaws(template, path, pod_level_resources))


_LONGEST_KEPT: Final = 16 * 1024
_KEPT: Final = 512


def known_flaws(template: Obj, path: str, pod_level_resources: bool) -> tuple[Refusal, ...]:
    """Return the same; a template that was judged lately is not judged again, because many jobs have the same one."""
    text = msgspec.json.encode(template)
    if len(text) > _LONGEST_KEPT:
        return template_flaws(template, path, pod_level_resources)
    return _judged(text, path, pod_level_resources)


@lru_cache(maxsize=_KEPT)
def _judged(text: bytes, path: str, pod_level_resources: bool) -> tuple[Refusal, ...]:
    return template_flaws(msgspec.json.decode(text), path, pod_level_resources)


def _flaws(template: Obj, path: str, pod_level_resources: bool) -> Flaws:
    yield from metadata.metadata(part(template, "metadata"), f"{path}.metadata")
    spec, at = part(template, "spec"), f"{path}.spec"
    yield from volumes.volumes(spec, f"{at}.volumes")
    yield from pod.resource_claims(spec, f"{at}.resourceClaims")
    yield from containers.containers(spec, at)
    if pod_level_resources:
        yield from resources.pod_resources(spec, f"{at}.resources")
    yield from pod.pod_fields(spec, at)
    yield from security.pod_security(spec, at)
    yield from placement.placement(spec, at)
