"""Regular expressions in the syntax of Go (RE2), read with Python's engine.

Both agree on most of the syntax. What Go does not have is refused: look-around, back-references, possessive and
conditional parts. What Python does not have is written in its way: classes such as ``[[:alpha:]]``, quoted parts, the
end of the text. Words, digits and spaces are those of ASCII, as in Go.

Go takes up to 1,000 groups in one another. Python takes fewer, and so does this module.

Properties such as ``\\p{Greek}`` are exact for ASCII (`go_properties`). Upper and lower case of other letters differ.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NoReturn

from volcano_py.api.go_properties import members

MOST_REPEATS: Final = 1000
"""The greatest number in ``{n,m}``, also of repeats inside of repeats together."""
DEEPEST: Final = 1000
"""How many groups may stand in one another."""

_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PERL: Final = {
    "d": r"\d",
    "D": r"\D",
    "w": r"\w",
    "W": r"\W",
    "s": r"\t\n\f\r ",
    "S": r"\x00-\x08\x0B\x0E-\x1F!-\U0010FFFF",
}
_EDGES: Final = {"A": r"\A", "b": r"\b", "B": r"(?!\b)", "z": r"\Z"}  # before Python 3.14, \B is not in an empty text
_CONTROLS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NUMBER: Final = "(0|[1-9][0-9]*)"
_REPEAT: Final = re.compile(rf"\{{{_NUMBER}(,{_NUMBER}?)?\}}", re.ASCII)
_LONGEST_NUMBER: Final = 8
_NAME: Final = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_NAMED: Final = re.compile(r"\(\?P?<(?=.)", re.DOTALL)
_FLAGS: Final = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])", re.ASCII)
_TRIED_FLAGS: Final = re.compile(r"\(\?[imsU]*(-[imsU]*)?", re.ASCII)
_OCTAL: Final = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})", re.ASCII)
_TWO_DIGITS: Final = re.compile(r"[0-9A-Fa-f]{2}", re.ASCII)
_DIGITS: Final = frozenset("0123456789abcdefABCDEF")
_LAST: Final = 0x10FFFF


class PatternError(ValueError):
    """The text is not a regular expression of Go; the message says why, in Go's words where it has some."""


def _refuse(what: str, part: str) -> NoReturn:
    raise PatternError(f"error parsing regexp: {what}: `{part}`")


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern of Go for Python's engine; raise PatternError if Go would refuse it."""
    translated = _Translator(pattern).translated()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"error parsing regexp: {error}") from None


@dataclass(slots=True)
class _Group:
    """A group that is still open, or the whole pattern."""

    opening: str = ""
    multiline: bool = False
    """Whether the end of a line counts as an end, outside of the group."""
    pieces: list[str] = field(default_factory=list)
    last: int | None = None
    """Which piece a repetition would be about."""
    flags: list[str] = field(default_factory=list)
    """What holds until the end of the group."""
    weight: int = 1
    """How often its most repeated part is repeated."""
    last_weight: int = 1

    def add(self, piece: str, weight: int = 1) -> None:
        self.last, self.last_weight = len(self.pieces), weight
        self.weight = max(self.weight, weight)
        self.pieces.append(piece)

    def repeat(self, operator: str, times: int) -> None:
        assert self.last is not None
        self.pieces[self.last] = f"(?:{self.pieces[self.last]}){operator}"
        self.last_weight = max(1, self.last_weight * times)
        self.weight = max(self.weight, self.last_weight)

    def alternative(self) -> None:
        self.pieces.append(")" * len(self.flags) + "|" + "".join(self.flags))
        self.last = None

    def closed(self) -> str:
        return self.opening + "".join(self.pieces) + ")" * len(self.flags)


class _Translator:
    """Goes through a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._multiline = False
        self._groups = [_Group()]

    def translated(self) -> str:
        repeated = ""
        while self._at < len(self._pattern):
            letter = self._pattern[self._at]
            if letter in "*+?" or (letter == "{" and _REPEAT.match(self._pattern, self._at)):
                repeated = self._repeat(repeated)
                continue
            repeated = ""
            group = self._groups[-1]
            if letter == "(":
                self._open()
            elif letter == ")":
                self._close()
            elif letter == "|":
                self._at += 1
                group.alternative()
            elif letter == "[":
                group.add(self._class())
            elif letter == "\\":
                self._escape(group)
            elif letter == "$":
                self._at += 1
                group.add("$" if self._multiline else r"\Z")  # Python's $ also stands before a last line feed
            else:
                self._at += 1
                group.add(letter if letter in "^." else _literal(ord(letter)))
        if len(self._groups) > 1:
            _refuse("missing closing )", self._pattern)
        return self._groups[0].closed()

    # Repetition

    def _repeat(self, before: str) -> str:
        """Repeat what stands before; return what was written."""
        start, times, group = self._at, 1, self._groups[-1]
        if match := _REPEAT.match(self._pattern, self._at):
            self._at += len(match[0])
            bounds = [bound for bound in (match[1], match[3]) if bound]
            if any(len(bound) > _LONGEST_NUMBER or int(bound) > MOST_REPEATS for bound in bounds):
                _refuse("invalid repeat count", match[0])
            least, most = int(bounds[0]), int(bounds[-1])
            if least > most:
                _refuse("invalid repeat count", match[0])
            times = most
        else:
            self._at += 1
        if self._pattern.startswith("?", self._at):
            self._at += 1
        written = self._pattern[start : self._at]
        if before:
            _refuse("invalid nested repetition operator", before + written)
        if group.last is None:
            _refuse("missing argument to repetition operator", written)
        if times > 1 and group.last_weight * times > MOST_REPEATS:
            _refuse("invalid repeat count", written)
        group.repeat(written, times)
        return written

    # Groups

    def _open(self) -> None:
        """Open a group; flags alone hold until the end of the group around them."""
        rest = self._pattern[self._at :]
        if len(self._groups) > DEEPEST:
            _refuse("expression nests too deeply", self._pattern)
        if not rest.startswith("(?"):
            self._at += 1
            self._groups.append(_Group("(", self._multiline))
        elif named := _NAMED.match(rest):
            self._at += len(named[0]) + len(self._name(rest, len(named[0]))) + 1
            self._groups.append(_Group("(", self._multiline))
        elif match := _FLAGS.match(rest):
            self._at += len(match[0])
            on, off = set(match[1]) - {"U"}, set(match[2] or "") - {"U", "-"}
            on -= off
            opening = "(?" + "".join(sorted(on)) + ("-" + "".join(sorted(off)) if off else "") + ":"
            outside = self._multiline
            self._multiline = (outside or "m" in on) and "m" not in off
            if match[3] == ":":
                self._groups.append(_Group(opening, outside))
            else:
                self._groups[-1].flags.append(opening)
                self._groups[-1].pieces.append(opening)
        else:
            tried = _TRIED_FLAGS.match(rest)
            assert tried is not None
            _refuse("invalid or unsupported Perl syntax", rest[: len(tried[0]) + 1])

    @staticmethod
    def _name(rest: str, start: int) -> str:
        """Return the name of a group; two groups may have the same."""
        name, closed, _ = rest[start:].partition(">")
        if not closed:
            _refuse("invalid named capture", rest)
        if not _NAME.fullmatch(name):
            _refuse("invalid named capture", rest[: start + len(name) + 1])
        return name

    def _close(self) -> None:
        if len(self._groups) == 1:
            _refuse("unexpected )", self._pattern)
        self._at += 1
        group = self._groups.pop()
        self._multiline = group.multiline
        self._groups[-1].add(group.closed() + ")", group.weight)

    # Letters and classes

    def _escape(self, group: _Group) -> None:
        rest = self._pattern[self._at :]
        letter = rest[1:2]
        if letter == "Q":
            quoted, end, _ = rest[2:].partition("\\E")
            self._at += 2 + len(quoted) + len(end)
            for one in quoted:
                group.add(_literal(ord(one)))
        elif letter and letter in _EDGES:
            self._at += 2
            group.add(_EDGES[letter])
        elif found := self._perl_class():
            group.add(f"[{found}]")
        else:
            group.add(_literal(self._escaped()))

    def _perl_class(self) -> str:
        """Take a class that a backslash begins, as it stands between square brackets; "" if there is none."""
        rest = self._pattern[self._at : self._at + 2]
        if rest in ("\\p", "\\P"):
            return self._property()
        if rest[:1] == "\\" and rest[1:] in _PERL:
            self._at += 2
            return _PERL[rest[1:]]
        return ""

    def _property(self) -> str:
        rest = self._pattern[self._at :]
        written = rest[:3]
        if written.endswith("{"):
            inner, end, _ = rest.partition("}")
            written = inner + end
        name = written[3:-1] if written[2:3] == "{" and written.endswith("}") else written[2:]
        found = members(name.removeprefix("^"), (rest[1] == "P") != name.startswith("^"))
        if found is None:
            _refuse("invalid character class range", written)
        self._at += len(written)
        return found

    def _escaped(self) -> int:
        """Take one letter that is written with a backslash; return its code."""
        rest = self._pattern[self._at :]
        letter = rest[1:2]
        if not letter:
            _refuse("trailing backslash at end of expression", "")
        if match := _OCTAL.match(rest):
            self._at += len(match[0])
            return int(match[1], 8)
        if letter == "x":
            return self._hexadecimal(rest)
        if letter in _CONTROLS:
            self._at += 2
            return _CONTROLS[letter]
        if letter.isascii() and not letter.isalnum():
            self._at += 2
            return ord(letter)
        _refuse("invalid escape sequence", rest[:2])

    def _hexadecimal(self, rest: str) -> int:
        if not rest.startswith("\\x{"):
            if not _TWO_DIGITS.fullmatch(rest[2:4]):
                _refuse("invalid escape sequence", rest[:4])
            self._at += 4
            return int(rest[2:4], 16)
        code = 0
        for end, digit in enumerate(rest[3:], 4):
            if digit == "}" and end > 4:
                self._at += end
                return code
            code = code * 16 + int(digit, 16) if digit in _DIGITS else _LAST + 1
            if code > _LAST:
                _refuse("invalid escape sequence", rest[:end])
        _refuse("invalid escape sequence", rest)

    def _class(self) -> str:
        start = self._at
        negated = self._pattern.startswith("[^", start)
        self._at += 2 if negated else 1
        pieces: list[str] = []
        while not pieces or not self._pattern.startswith("]", self._at):
            if found := self._named_class() or self._perl_class():
                pieces.append(found)
                continue
            first = self._at
            low = high = self._in_class(start)
            if self._pattern.startswith("-", self._at) and self._pattern[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                high = self._in_class(start)
                if high < low:
                    _refuse("invalid character class range", self._pattern[first : self._at])
            pieces.append(_literal(low) + (f"-{_literal(high)}" if high != low else ""))
        self._at += 1
        return f"[{'^' if negated else ''}{''.join(pieces)}]"

    def _in_class(self, start: int) -> int:
        if self._at >= len(self._pattern):
            _refuse("missing closing ]", self._pattern[start:])
        if self._pattern[self._at] == "\\":
            return self._escaped()
        self._at += 1
        return ord(self._pattern[self._at - 1])

    def _named_class(self) -> str:
        if not self._pattern.startswith("[:", self._at):
            return ""
        end = self._pattern.find(":]", self._at + 2)
        if end < 0:
            return ""
        written = self._pattern[self._at : end + 2]
        name = written[2:-2]
        found = _CLASSES.get(name.removeprefix("^"))
        if found is None:
            _refuse("invalid character class range", written)
        self._at = end + 2
        return "".join(_others(found)) if name.startswith("^") else found


def _others(letters: str) -> Iterator[str]:
    """Yield what is not of a class of ASCII."""
    known = re.compile(f"[{letters}]")
    yield from (_literal(code) for code in range(0x80) if not known.match(chr(code)))
    yield r"\x80-\U0010FFFF"


def _literal(code: int) -> str:
    """Return one letter as Python's patterns write it, anywhere."""
    letter = chr(code)
    return letter if letter.isascii() and letter.isalnum() else f"\\U{code:08X}"
