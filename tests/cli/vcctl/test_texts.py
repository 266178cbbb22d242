"""What other people put into objects cannot disturb a terminal, and takes the columns that it is given."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.cli.vcctl.texts import columns, harmless, head, one_line, padded, tail, wrapped

LETTERS = st.text("ab 日本語é́-.", max_size=40)


def test_control_characters_are_shown_and_not_carried_out() -> None:
    assert harmless("a\x1b[31mred\nnext\ttab\x07\x7f\x9b") == "a^[[31mred\nnext\ttab^G^??"
    assert one_line("a\nb\tc\x1b") == "a b c^["
    assert one_line("plain text") == "plain text"


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\N{COMBINING ACUTE ACCENT}", 1), ("", 0)])
def test_columns_of_a_terminal(text: str, width: int) -> None:
    assert columns(text) == width
    assert columns(padded(text, 10)) == 10


@given(LETTERS, st.integers(min_value=0, max_value=20))
def test_the_ends_of_a_text_fit(text: str, width: int) -> None:
    assert columns(head(text, width)) <= width
    assert columns(tail(text, width)) <= width
    assert text.startswith(head(text, width))
    assert text.endswith(tail(text, width))


@given(LETTERS, st.integers(min_value=6, max_value=30))
def test_no_line_is_too_wide_and_no_letter_is_lost(text: str, width: int) -> None:
    lines = wrapped(text, width, first="  ", others="    ")

    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.text("ab cd", max_size=60), st.booleans())
def test_plain_text_is_wrapped_as_usual(text: str, long_words: bool) -> None:
    text = " ".join(text.split())
    usual = textwrap.wrap(
        text, 12, initial_indent=" ", subsequent_indent="  ", break_long_words=long_words, break_on_hyphens=False
    )
    if long_words and any(len(word) > 10 for word in text.split()):
        return  # there, the beginning of a long word stays on the line before

    assert wrapped(text, 12, first=" ", others="  ", long_words=long_words) == usual
