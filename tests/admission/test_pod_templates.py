"""Templates that the API server would take as pods are taken, and the others are refused with paths and sentences."""

import pytest

from tests.admission.templates import BAD, GOOD, template_of
from volcano_py.admission.pod_rules.template import template_flaws


def flaws(changes):
    return template_flaws(template_of(changes), "template", pod_level_resources=True)


def test_there_are_three_hundred() -> None:
    assert len(GOOD) + len(BAD) >= 300


@pytest.mark.parametrize("name", GOOD)
def test_a_good_template_is_taken(name: str) -> None:
    assert flaws(GOOD[name]) == ()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_template_is_refused(name: str) -> None:
    found = flaws(BAD[name])

    assert found
    assert all(flaw.field.startswith("template.") and flaw.message and flaw.hint for flaw in found)
