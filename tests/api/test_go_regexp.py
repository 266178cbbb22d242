"""Patterns in the syntax of Go are taken or refused as Go does it, and match the same texts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.api.go_regexp import PatternError, compile_pattern

REFUSED = [
    ("a(b", "missing closing ): `a(b`"),
    ("a)b", "unexpected ): `a)b`"),
    ("[a", "missing closing ]: `[a`"),
    ("[]", "missing closing ]: `[]`"),
    ("*a", "missing argument to repetition operator: `*`"),
    ("a**", "invalid nested repetition operator: `**`"),
    ("a*?+", "invalid nested repetition operator: `*?+`"),
    ("a|*", "missing argument to repetition operator: `*`"),
    ("(*)", "missing argument to repetition operator: `*`"),
    ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
    ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
    ("(a)\\1", "invalid escape sequence: `\\1`"),
    ("\\8", "invalid escape sequence: `\\8`"),
    ("\\Z", "invalid escape sequence: `\\Z`"),
    ("\\C", "invalid escape sequence: `\\C`"),
    ("\\_a\\j", "invalid escape sequence: `\\j`"),
    ("a\\", "trailing backslash at end of expression: ``"),
    ("(?P<n", "invalid named capture: `(?P<n`"),
    ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
    ("(?<", "invalid or unsupported Perl syntax: `(?<`"),
    ("(?<>a)", "invalid named capture: `(?<>`"),
    ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
    ("(?#c)", "invalid or unsupported Perl syntax: `(?#`"),
    ("(?", "invalid or unsupported Perl syntax: `(?`"),
    ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
    ("(?i.)", "invalid or unsupported Perl syntax: `(?i.`"),
    ("(?i-", "invalid or unsupported Perl syntax: `(?i-`"),
    ("a{1001}", "invalid repeat count: `{1001}`"),
    ("a{2,1}", "invalid repeat count: `{2,1}`"),
    ("(a{100}){100}", "invalid repeat count: `{100}`"),
    ("[z-a]", "invalid character class range: `z-a`"),
    ("[a-\\d]", "invalid escape sequence: `\\d`"),
    ("[b-a", "invalid character class range: `b-a`"),
    ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
    ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
    ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
    ("a*+", "invalid nested repetition operator: `*+`"),
    ("\\pX", "invalid character class range: `\\pX`"),
    ("\\p", "invalid character class range: `\\p`"),
    ("\\p{}", "invalid character class range: `\\p{}`"),
    ("\\p{Lu", "invalid character class range: `\\p{Lu`"),
    ("\\p{Gondorian}", "invalid character class range: `\\p{Gondorian}`"),
    ("\\P{^Nope}", "invalid character class range: `\\P{^Nope}`"),
    ("[\\p{Nope}]", "invalid character class range: `\\p{Nope}`"),
    ("\\x{}", "invalid escape sequence: `\\x{}`"),
    ("\\x{110000}", "invalid escape sequence: `\\x{110000`"),
    ("\\xg0", "invalid escape sequence: `\\xg0`"),
    ("\\p{Is Greek}", "invalid character class range: `\\p{Is Greek}`"),
    ("\\1", "invalid escape sequence: `\\1`"),
    ("(?i){2}", "missing argument to repetition operator: `{2}`"),
    ("\\é", "invalid escape sequence: `\\é`"),
]
"""With the words of Go 1.26."""


@pytest.mark.parametrize(("pattern", "why"), REFUSED)
def test_what_go_refuses(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=f"^{re.escape(f'error parsing regexp: {why}')}$"):
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
        (r"[\p{Lu}-]", "a-b", True),
        ("^[]a]$", "]", True),
        (r"^\w$", "é", False),
        ("(?s).", "\n", True),
        ("(?m)^b$", "a\nb\nc", True),
        ("a.*?b", "axxb", True),
        ("^*$+a??", "b", True),
        (r"\B", "", True),
        (r"^\Qab\E*$", "abb", True),
        (r"^\Qab\E*$", "abab", False),
        ("a(?i)*B", "b", True),
        ("(?m:^a$)|^b$", "c\nb", False),
        ("[[:^alpha:]]", "a", False),
        ("[[:^alpha:]]", "a1", True),
        (r"\s", "\v", False),
        (r"\S", "\v", True),
        ("[[:space:]]", "\v", True),
        ("(?P<1a>x){2}", "xx", True),
        ("(?P<n>a)(?P<n>b)", "ab", True),
        ("a{01}", "a{01}", True),
        ("[a-]", "-", True),
        ("[&&~~||]", "&", True),
    ],
)
def test_what_matches(pattern: str, text: str, matches: bool) -> None:
    assert bool(compile_pattern(pattern).search(text)) == matches


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (r"^\p{Lu}+$", "AZ", "a1-"),
        (r"^\pL+$", "aZ", "1-"),
        (r"^\PL+$", "1-", "aZ"),
        (r"^\p{^L}+$", "1-", "aZ"),
        (r"^\P{^L}+$", "aZ", "1-"),
        (r"^\p{lowercase letter}+$", "az", "A1"),
        (r"^\p{Decimal_Number}+$", "09", "a-"),
        (r"^\p{LC}?\p{Pd}$", "a-", "a1"),
        (r"^\p{Latin}+$", "aZ", "1-"),
        (r"^\p{COMMON}+$", "1-", "aZ"),
        (r"^\p{Greek}$", "", "aZ1-"),
        (r"^\P{Greek}+$", "aZ1-", ""),
        (r"^[\p{Old_Italic}\p{N}]+$", "19", "a-"),
        (r"^\p{Any}+$", "aZ1-", ""),
        (r"^\P{Any}$", "", "aZ1-"),
        (r"^\p{Ascii}+$", "aZ1-", "é"),
        (r"^\P{ASCII}+$", "é", "aZ1-"),
        (r"^\p{Assigned}+$", "aZ1-", ""),
        (r"^\p{Cn}$", "", "aZ1-"),
    ],
)
def test_properties(pattern: str, matching: str, others: str) -> None:
    assert not matching or compile_pattern(pattern).search(matching)
    assert [letter for letter in others if compile_pattern(pattern).search(letter)] == []


@given(st.text(alphabet=r"ab()[]{}*+?|^$.\\-,1:=!<PQEimsU", max_size=20))
def test_no_text_makes_it_fail(pattern: str) -> None:
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return
    assert isinstance(compiled, re.Pattern)
