"""The difference of two objects."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from volcano_py.apiserver.patches import merge_patch
from volcano_py.controllers.merge_patch import difference

JSON = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_the_difference_turns_one_object_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert merge_patch(before, difference(before, after)) == after


@given(OBJECTS)
def test_equal_objects_differ_in_nothing(obj: dict[str, Any]) -> None:
    assert difference(obj, dict(obj)) == {}
