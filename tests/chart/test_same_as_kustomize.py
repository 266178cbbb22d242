"""What `helm install` creates is what `kubectl apply -k` creates; each difference stands here with its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendering import MANIFESTS, Helm, Objects, differences, kustomize
from tests.controlplane.binaries import find_binaries

# Helm creates the namespace (--create-namespace).
ABSENT = {("Namespace", "volcano-system")}


@pytest.fixture(scope="module")
def kubectl() -> Path:
    return find_binaries()["kubectl"]


def differing(applied: Objects, rendered: Objects) -> list[str]:
    found = []
    for key in sorted({*applied, *rendered}):
        kind, name = key
        if key not in rendered:
            found.append(f"{kind} {name} is not in the chart")
        elif key not in applied:
            found.append(f"{kind} {name} is only in the chart")
        else:
            ours, theirs = (one_line(objects[key]) for objects in (applied, rendered))
            found += [f"{kind} {name}: {one}" for one in differences(ours, theirs)]
    return found


def one_line(value: Any) -> Any:
    """Fold the white space of expressions: kustomize breaks folded text at other places, and CEL does not care."""
    if isinstance(value, dict):
        return {
            key: " ".join(one.split()) if key in {"expression", "messageExpression"} else one_line(one)
            for key, one in value.items()
        }
    return [one_line(one) for one in value] if isinstance(value, list) else value


def expected(applied: Objects) -> Objects:
    """Return what kustomize applies, with the differences that have a reason."""
    return {key: one for key, one in applied.items() if key not in ABSENT}


EVERY_PATH = (
    "/jobs/mutate,/jobs/validate,/queues/mutate,/queues/validate,/podgroups/mutate,/podgroups/validate,"
    "/pods/mutate,/pods/validate,/jobflows/validate,/hypernodes/validate,/cronjobs/validate"
)
ADDRESS = "https://volcano-webhooks.example.com:443"
OVERLAYS: dict[str, dict[str, Any]] = {
    "admission-policies": {"admission_enable": False, "vap_enable": True, "map_enable": True},
    "high-availability": {"high_availability_enable": True},
    "pod-webhooks": {"enabled_admissions": EVERY_PATH},
    "sharding": {"scheduler_sharding_mode": "hard", "scheduler_sharding_name": "volcano"},
    "webhook-url": {"webhook_url": ADDRESS},
}


def test_each_overlay_has_values() -> None:
    assert {folder.name for folder in (MANIFESTS / "overlays").iterdir()} == set(OVERLAYS)


def test_the_chart_creates_what_kustomize_applies(helm: Helm, kubectl: Path) -> None:
    assert differing(expected(kustomize(kubectl, MANIFESTS)), helm.template()) == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_values_stand_for_overlays(helm: Helm, kubectl: Path, overlay: str) -> None:
    applied = expected(kustomize(kubectl, MANIFESTS / "overlays" / overlay))

    assert differing(applied, helm.template({"custom": OVERLAYS[overlay]})) == []


def test_policies_about_queues(helm: Helm, kubectl: Path) -> None:
    values = {"vap_enable": True, "vap_queues_enable": True}
    applied = {
        key: one
        for folder in (MANIFESTS, MANIFESTS / "policies", MANIFESTS / "policies" / "queues")
        for key, one in kustomize(kubectl, folder).items()
        if not key[0].startswith("Mutating") or key[0].endswith("Configuration")
    }

    assert differing(expected(applied), helm.template({"custom": values})) == []


def test_a_difference_is_found(helm: Helm) -> None:
    """The comparison itself sees a changed rule, a changed flag, and an object that is missing."""
    rendered, changed = helm.template(), helm.template()
    changed["ClusterRole", "volcano-scheduler"]["rules"][0]["verbs"].append("update")
    changed["Deployment", "volcano-scheduler"]["spec"]["template"]["spec"]["containers"][0]["args"][0] = "--other"
    del changed["Service", "volcano-scheduler-service"]

    found = differing(rendered, changed)

    assert [one.partition(":")[0] for one in found] == [
        "ClusterRole volcano-scheduler",
        "Deployment volcano-scheduler",
        "Service volcano-scheduler-service is not in the chart",
    ]
