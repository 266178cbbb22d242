"""Whatever a YAML file contains, it is read or refused with ConfError."""

from typing import Any

import pytest

from volcano_py.conf.plain import read_plain
from volcano_py.conf.schema import ConfError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-11-31", "2026-11-31"),
        ("2024-01-01 25:61:00", "2024-01-01 25:61:00"),
        ("!!timestamp x", "x"),
        ("!!bool x", False),
        ("1:99:99", "1:99:99"),
        ("{1: yes, ~: [0x10, 1.5]}", {"1": True, "~": [16, 1.5]}),
        ("", None),
    ],
)
def test_what_cannot_be_a_date_is_text(text: str, value: Any) -> None:
    assert read_plain(f"a: {text}", "f") == {"a": value}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0x_", "f:2: '0x_' is not a number"),
        ("9" * 5000, "is not a number"),
        ("!!int x", "f:2: 'x' is not a number"),
        ("[" * 900 + "]" * 900, "f:1: it is nested too deeply"),
        ("[" * 3000, "f:"),
        ("&x [*x]", "an anchor contains itself"),
    ],
    ids=["no digits", "many digits", "no number", "deep", "too deep", "itself"],
)
def test_what_cannot_be_read_says_where(text: str, problem: str) -> None:
    with pytest.raises(ConfError) as caught:
        read_plain(f"# comment\na: {text}", "f")

    assert problem in str(caught.value)
