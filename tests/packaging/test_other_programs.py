"""The page about other programs: its health checks know all phases of a job, and the tests that it names exist."""

import re

import yaml

from tests.packaging.pages import DOCS, REPOSITORY
from volcano_py.controllers.job import phases
from volcano_py.local.manifests import definitions

PAGE = (DOCS / "other-programs.md").read_text()
ARGO, FLUX = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))


def quoted(text: str) -> set[str]:
    """Return the phases that an expression compares with."""
    return set(re.findall(r'"([A-Z][a-z]+)"', text))


def test_the_health_check_of_argo_cd_judges_the_phases_at_which_a_job_rests() -> None:
    (script,) = ARGO.values()
    compared = set(re.findall(r'phase == "([A-Za-z]+)"', script))

    assert compared == phases.AT_REST
    assert quoted(script) - compared == {"Progressing", "Healthy", "Degraded", "Suspended"}


def test_the_health_check_of_flux_judges_the_same_phases() -> None:
    (check,) = FLUX["spec"]["healthCheckExprs"]
    served = {
        (f"{one['spec']['group']}/{version['name']}", one["spec"]["names"]["kind"])
        for one in definitions()
        for version in one["spec"]["versions"]
    }

    assert (check["apiVersion"], check["kind"]) in served
    assert quoted(check["current"]) == {phases.COMPLETED}
    assert quoted(check["failed"]) == phases.AT_REST - {phases.COMPLETED}


def test_the_resource_template_of_argo_workflows_judges_the_same_phases() -> None:
    found = re.search(r"failureCondition: status\.state\.phase in \((.*?)\)", PAGE)

    assert found is not None
    assert {*found[1].split(", "), phases.COMPLETED} == phases.AT_REST


def test_the_tests_that_the_page_names_exist() -> None:
    named = re.findall(r"`(tests/[^`]+)`", PAGE)

    assert len(named) >= 5
    assert [path for path in named if not (REPOSITORY / path).exists()] == []
