import pytest

from volcano_py.model.selectors import EVERYTHING, LabelSelector
from volcano_py.model.shape import Requirement


@pytest.mark.parametrize(
    ("requirement", "labels", "expected"),
    [
        pytest.param(Requirement("app", "In", ("a", "b")), {"app": "b"}, True, id="one-of-the-values"),
        pytest.param(Requirement("app", "In", ("a", "b")), {"app": "c"}, False, id="another-value"),
        pytest.param(Requirement("app", "In", ("a",)), {}, False, id="no-label-is-not-in"),
        pytest.param(Requirement("app", "NotIn", ("a",)), {"app": "b"}, True, id="none-of-the-values"),
        pytest.param(Requirement("app", "NotIn", ("a",)), {"app": "a"}, False, id="a-value-that-is-excluded"),
        pytest.param(Requirement("app", "NotIn", ("a",)), {}, True, id="no-label-is-not-one-of-them"),
        pytest.param(Requirement("app", "Exists"), {"app": ""}, True, id="exists-even-empty"),
        pytest.param(Requirement("app", "Exists"), {"app2": ""}, False, id="does-not-exist"),
        pytest.param(Requirement("app", "DoesNotExist"), {}, True, id="must-not-exist"),
        pytest.param(Requirement("app", "DoesNotExist"), {"app": "a"}, False, id="exists-and-must-not"),
    ],
)
def test_a_requirement_holds_or_does_not(requirement: Requirement, labels: dict[str, str], expected: bool) -> None:
    assert LabelSelector((requirement,)).matches(labels) is expected


def test_all_requirements_must_hold() -> None:
    selector = LabelSelector((Requirement("app", "Exists"), Requirement("tier", "In", ("web",))))

    assert selector.matches({"app": "a", "tier": "web"})
    assert not selector.matches({"app": "a"})


def test_no_requirement_selects_everything() -> None:
    assert EVERYTHING.empty
    assert EVERYTHING.matches({})


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(ValueError, match="operator 'Gt' on label app: use In, NotIn, Exists or DoesNotExist"):
        LabelSelector((Requirement("app", "Gt", ("1",)),)).matches({"app": "2"})
