"""Pod templates get the verdict of a real API server: every template also goes there as a pod (dryRun)."""

from typing import Any

from tests.admission.templates import BAD, GOOD, template_of
from tests.controlplane.rest import ApiFailure
from tests.e2e.control_plane import ControlPlane
from volcano_py.admission.pod_rules.template import template_flaws

ALL = {**GOOD, **BAD}
OTHERWISE: dict[str, str] = {}
"""Templates on which the verdicts differ, each with the reason."""


def refusal_of_server(plane: ControlPlane, namespace: str, template: dict[str, Any]) -> str:
    """Return why the API server does not take a pod, "" if it takes it."""
    pod = {"metadata": {**template.get("metadata", {}), "name": "a"}, "spec": template["spec"]}
    try:
        plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    except ApiFailure as failure:
        return str(failure)
    return ""


def test_every_template_gets_the_verdict_of_the_api_server(control_plane: ControlPlane, namespace: str) -> None:
    different = {}
    for name, changes in ALL.items():
        template = template_of(changes)
        said = refusal_of_server(control_plane, namespace, template)
        ours = [f"{flaw.field}: {flaw.message}" for flaw in template_flaws(template, "template", True)]
        if bool(said) != bool(ours):
            different[name] = said or f"taken there, refused here: {ours}"

    assert {name: why for name, why in different.items() if name not in OTHERWISE} == {}
    assert OTHERWISE.keys() - different.keys() == set()
