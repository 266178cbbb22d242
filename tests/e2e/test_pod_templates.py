"""Pod templates get the verdict of a real API server: every template also goes there as a pod (dryRun)."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.admission.refused_templates import BAD
from tests.admission.templates import GOOD, template_of
from tests.controlplane.rest import ApiFailure
from tests.e2e.control_plane import ControlPlane
from volcano_py.admission.pod_rules.template import template_flaws

ALL = {**GOOD, **BAD}
_NO_BUNDLES = "without its feature ClusterTrustBundleProjection, the API server takes such a source out unjudged"
OTHERWISE: dict[str, str] = {"bundle of a name and a signer": _NO_BUNDLES, "bundle of nothing": _NO_BUNDLES}
"""Templates on which the verdicts differ, each with the reason."""

RANDOM = 300
INVALID = 422
TEXTS = (
    "",
    "a",
    "A",
    "a b",
    "a.b",
    "a/b",
    "-a",
    "..",
    "/a",
    "../a",
    "a=b",
    "1",
    "x" * 64,
    "x" * 254,
    "a_b",
    "None",
    "-1",
)
NUMBERS = (-1, 0, 1, 2, 100, 101, 65536, 2**31 - 1)


def refusal_of_server(plane: ControlPlane, namespace: str, template: dict[str, Any]) -> ApiFailure | None:
    """Return why the API server does not take a pod, None if it takes it."""
    pod = {"metadata": {**template.get("metadata", {}), "name": "a"}, "spec": template["spec"]}
    try:
        plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    except ApiFailure as failure:
        return failure
    return None


def difference(plane: ControlPlane, namespace: str, template: dict[str, Any]) -> str:
    """Return how the verdicts on a template differ, "" if they do not; only what is invalid is our business."""
    said = refusal_of_server(plane, namespace, template)
    ours = [f"{flaw.field}: {flaw.message}" for flaw in template_flaws(template, "template", pod_level_resources=True)]
    if said is not None and said.code != INVALID:
        return ""
    if bool(said) == bool(ours):
        return ""
    return f"refused there: {said}" if said else f"refused here: {ours}"


def test_every_template_gets_the_verdict_of_the_api_server(control_plane: ControlPlane, namespace: str) -> None:
    found = {name: difference(control_plane, namespace, template_of(changes)) for name, changes in ALL.items()}

    assert {name: why for name, why in found.items() if why and name not in OTHERWISE} == {}
    assert [name for name in OTHERWISE if not found[name]] == []


@pytest.mark.parametrize("seed", [1, 2])
def test_so_do_several_changes_at_once(control_plane: ControlPlane, namespace: str, seed: int) -> None:
    generator = random.Random(seed)
    found = {}
    for number in range(RANDOM):
        names = generator.sample(list(GOOD), 3) if number % 2 else generator.sample(list(ALL), 2)
        try:
            template = template_of({path: value for name in names for path, value in ALL[name].items()})
        except (IndexError, AttributeError):
            continue  # one takes out what the other changes
        found[", ".join(names)] = difference(control_plane, namespace, template)

    assert len(found) > RANDOM // 2
    assert {names: why for names, why in found.items() if why} == {}


@pytest.mark.parametrize("seed", [1, 2])
def test_so_does_any_other_value(control_plane: ControlPlane, namespace: str, seed: int) -> None:
    generator = random.Random(seed)
    found = {}
    for _ in range(RANDOM):
        name = generator.choice(list(GOOD))
        template = template_of(GOOD[name])
        owner, key = generator.choice(list(places(template["spec"])))
        old = owner.pop(key)
        if isinstance(old, bool):
            owner[key] = not old
        elif isinstance(old, int | str):
            new = generator.choice(NUMBERS if isinstance(old, int) else TEXTS)
            owner.insert(key, new) if isinstance(owner, list) else owner.__setitem__(key, new)
        found[f"{name}: {key} of {owner}"] = difference(control_plane, namespace, template)

    assert {change: why for change, why in found.items() if why} == {}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every owner of a field or item, with its key."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])
