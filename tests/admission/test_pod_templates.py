"""Templates that the API server would take as pods are taken, and the others are refused with paths and sentences."""

import pytest

from tests.admission.refused_templates import BAD
from tests.admission.templates import GOOD, template_of
from volcano_py.admission.pod_rules.template import known_flaws, template_flaws


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


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_a_template_that_is_known_gets_the_same_answer(name: str) -> None:
    template = template_of({**GOOD, **BAD}[name])
    fresh = template_flaws(template, "template", pod_level_resources=True)

    assert [known_flaws(template, "template", pod_level_resources=True) for _ in range(2)] == [fresh, fresh]
    assert known_flaws(template, "other", pod_level_resources=True) == template_flaws(
        template, "other", pod_level_resources=True
    )
