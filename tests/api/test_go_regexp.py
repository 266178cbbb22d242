"""Patterns in the syntax of Go are taken or refused as Go does it, and match the same texts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.api.go_regexp import PatternError, compile_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "a(b",
        "a)b",
        "[a",
        "[]",
        "*a",
        "a**",
        "a|*",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        r"(a)\1",
        r"\8",
        r"\Z",
        r"\_a\j",
        "a\\",
        "(?P<n>a)(?P<n>b)",
        "(?P=n)",
        "(?#c)",
        "a{1001}",
        "a{2,1}",
        "[z-a]",
        "[[:nope:]]",
        "(?x)a",
        "a{2}{3}",
        "a*+",
    ],
)
def test_what_go_refuses(pattern: str) -> None:
    with pytest.raises(PatternError, match="error parsing regexp"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "anything", True),
        ("^node-[0-9]+$", "node-12", True),
        ("^node-[0-9]+$", "node-12\n", False),
        (r"^a\z", "a", True),
        ("[[:alpha:]]+[[:digit:]]", "ab1", True),
        ("^[^[:space:]]$", " ", False),
        (r"\Qa.b\E", "axb", False),
        (r"\Qa.b", "a.b", True),
        ("(?i)ABC", "abc", True),
        ("a(?i)b|c", "aB", True),
        ("a(?i)b|c", "C", True),
        ("^(a(?i)b)c$", "aBC", False),
        ("(?i:a)b", "AB", False),
        ("(?P<n>a)(?<m>b)", "ab", True),
        (r"\x41\x{42}\103", "ABC", True),
        ("a{,3}", "a{,3}", True),
        ("^a{2}$", "aa", True),
        ("[a--]", "-", False),
        ("^[]a]$", "]", True),
        (r"^\w$", "é", False),
        ("(?s).", "\n", True),
        ("(?m)^b$", "a\nb\nc", True),
        ("a.*?b", "axxb", True),
    ],
)
def test_what_matches(pattern: str, text: str, matches: bool) -> None:
    if pattern == "[a--]":
        with pytest.raises(PatternError):
            compile_pattern(pattern)
        return
    assert bool(compile_pattern(pattern).search(text)) == matches


@given(st.text(alphabet=r"ab()[]{}*+?|^$.\\-,1:=!<PQEimsU", max_size=20))
def test_no_text_makes_it_fail(pattern: str) -> None:
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return
    assert isinstance(compiled, re.Pattern)
