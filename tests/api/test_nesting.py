"""JSON that is nested more deeply than Python's decoders go."""

import json
import string
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.api.nesting import DEEPEST, decoded, flattened

VALUES = st.recursive(
    st.none() | st.integers() | st.text(string.printable + "é", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=30,
)


def nested(levels: int) -> bytes:
    return b'{"f:a\\"{":[' * levels + b"1" + b"]}" * levels


def without(value: Any, deepest: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if deepest == 0:
        return None
    if isinstance(value, dict):
        return {key: without(one, deepest - 1) for key, one in value.items()}
    return [without(one, deepest - 1) for one in value]


@given(VALUES, st.integers(min_value=0, max_value=4))
def test_what_is_too_deep_is_null_and_the_rest_stays(value: Any, deepest: int) -> None:
    assert json.loads(flattened(json.dumps(value).encode(), deepest)) == without(value, deepest)


@pytest.mark.parametrize("levels", [1000, 5000])
@pytest.mark.parametrize("decode", [msgspec.json.decode, json.loads])
def test_ten_thousand_levels_are_read(decode: Any, levels: int) -> None:
    text = b'{"metadata":{"managedFields":%s,"name":"pod"}}' % nested(levels)

    assert decoded(decode, text)["metadata"]["name"] == "pod"


def test_what_decoders_can_read_stays_as_it_is() -> None:
    assert decoded(msgspec.json.decode, nested(DEEPEST)) == msgspec.json.decode(nested(DEEPEST))


def test_unfinished_json_is_still_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        decoded(msgspec.json.decode, nested(3000)[:-4000])
