"""Label and field selectors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.selectors import both, field_matcher, flag_getter, label_matcher, path_getter

_LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", "y", ""]))


def _matches(selector: str, labels: dict[str, str]) -> bool:
    matcher = label_matcher(selector)
    return matcher is None or matcher({"metadata": {"labels": labels}})


@given(_LABELS, st.sampled_from("abc"), st.sampled_from(["x", "y"]))
def test_each_operator_is_the_negation_of_its_opposite(labels: dict[str, str], key: str, value: str) -> None:
    assert _matches(f"{key}={value}", labels) is (labels.get(key) == value)
    assert _matches(f"{key}!={value}", labels) is not _matches(f"{key}={value}", labels)
    assert _matches(f"{key} in ({value},z)", labels) is _matches(f"{key}={value}", labels)
    assert _matches(f"{key} notin ({value},z)", labels) is not _matches(f"{key} in ({value},z)", labels)
    assert _matches(f"!{key}", labels) is not _matches(key, labels)


@given(_LABELS)
def test_requirements_joined_by_commas_must_all_hold(labels: dict[str, str]) -> None:
    assert _matches("a=x, b notin (y),c", labels) is (
        labels.get("a") == "x" and labels.get("b") != "y" and "c" in labels
    )


def test_an_object_without_labels_is_matched_by_what_demands_none() -> None:
    assert label_matcher("") is None
    matcher = label_matcher("!a,b!=c")
    assert matcher is not None
    assert matcher({"metadata": {}})


def test_missing_fields_compare_as_empty_text_and_missing_flags_as_false() -> None:
    fields = {"spec.nodeName": path_getter("spec.nodeName"), "spec.flag": flag_getter("spec.flag")}
    unbound: Obj = {"spec": {}}
    bound: Obj = {"spec": {"nodeName": "n", "flag": True}}
    for selector, expected in {
        "spec.nodeName=": [unbound],
        "spec.nodeName!=": [bound],
        "spec.nodeName==n": [bound],
        "spec.flag=false": [unbound],
        "spec.flag=true,spec.nodeName=n": [bound],
    }.items():
        matcher = field_matcher(selector, fields)
        assert matcher is not None
        assert [obj for obj in (unbound, bound) if matcher(obj)] == expected


def test_two_matchers_are_both_asked() -> None:
    yes, no = (lambda obj: True), (lambda obj: False)
    assert both(None, None) is None
    assert both(yes, None) is yes
    joined = both(yes, no)
    assert joined is not None
    assert joined({}) is False
