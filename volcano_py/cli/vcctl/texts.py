"""Texts from the cluster on a terminal: which characters they may contain, and how many columns they take."""

from typing import Final

_LINE_BREAKS: Final = dict.fromkeys((*b"\t\n\v\f\r", 0x85, 0x2028, 0x2029), " ")
_CONTROLS: Final = {
    **{code: f"^{chr(code + 64)}" for code in range(32)},
    0x7F: "^?",
    **dict.fromkeys(range(0x80, 0xA0), "?"),
}
_IN_LINES: Final = {code: text for code, text in _CONTROLS.items() if chr(code) not in "\t\n"}
_IN_CELLS: Final = _CONTROLS | _LINE_BREAKS


def harmless(text: str) -> str:
    """Return lines without control characters: an event must not be able to repaint the terminal of its reader."""
    return text if text.isprintable() else text.translate(_IN_LINES)


def one_line(text: str) -> str:
    """Return the same as one line, for a cell of a table."""
    return text if text.isprintable() else text.translate(_IN_CELLS)


def columns(text: str) -> int:
    """Return how many columns a text takes: letters of East Asia take two, accents that follow a letter none."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(one) in ("Mn", "Me", "Cf") else 2 if east_asian_width(one) in ("W", "F") else 1 for one in text
    )


def head(text: str, width: int) -> str:
    """Return as much of the beginning of a text as fits into a width."""
    if text.isascii():
        return text[: max(width, 0)]
    end = len(text)
    while end and columns(text[:end]) > width:
        end -= 1
    return text[:end]


def tail(text: str, width: int) -> str:
    """Return as much of the end of a text as fits into a width."""
    start = max(len(text) - max(width, 0), 0)
    while start < len(text) and columns(text[start:]) > width:
        start += 1
    return text[start:]


def padded(text: str, width: int) -> str:
    """Return a text with spaces behind it up to a width."""
    return text + " " * (width - columns(text))


def wrapped(text: str, width: int, *, first: str = "", others: str = "", long_words: bool = True) -> list[str]:
    """Return a text in lines no wider than a width; words that are too long are broken if ``long_words`` says so."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        indent = others if lines else first
        if line and columns(indent) + columns(line) + 1 + columns(word) > width:
            lines.append(indent + line)
            line, indent = "", others
        while long_words and not line and columns(indent) + columns(word) > width:
            part = head(word, max(width - columns(indent), 1)) or word[0]
            lines.append(indent + part)
            word, indent = word[len(part) :], others
        line = f"{line} {word}" if line else word
    if line:
        lines.append((others if lines else first) + line)
    return lines
