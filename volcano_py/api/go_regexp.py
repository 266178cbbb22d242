"""Regular expressions in the syntax of Go (RE2), read with Python's engine.

Both agree on most of the syntax. What Go does not have is refused: look-around, back-references, possessive and
conditional parts. What Python does not have is written in its way: classes such as ``[[:alpha:]]``, quoted parts, the
end of the text. Words, digits and spaces are those of ASCII, as in Go.

Properties such as ``\\p{Greek}`` are exact for ASCII (`go_properties`).
"""

import re
import warnings
from functools import lru_cache
from typing import Final

from volcano_py.api.go_properties import members

MOST_REPEATS: Final = 1000
"""The greatest number in ``{n,m}``."""

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
_GROUP: Final = re.compile(r"\(\?(?:P?<([A-Za-z_]\w*)>|([imsU]*(?:-[imsU]+)?)([:)]))", re.ASCII)
_REPEAT: Final = re.compile(r"\{(\d+)(,(\d*))?\}", re.ASCII)
_OCTAL_OR_HEX: Final = re.compile(
    r"\\(?:x[0-9A-Fa-f]{2}|x\{([0-9A-Fa-f]{1,6})\}|0[0-7]{0,2}|[1-7][0-7]{1,2})", re.ASCII
)
_ESCAPES: Final = frozenset("abfnrtvdDsSwWAB")


class PatternError(ValueError):
    """The text is not a regular expression of Go; the message says why, in Go's words where it has some."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern of Go for Python's engine; raise PatternError if Go would refuse it."""
    translated = _Translator(pattern).translated()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about classes that may mean something else one day
            return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"error parsing regexp: {error}") from None


class _Translator:
    """Goes through a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._names: set[str] = set()
        self._multiline = False
        self._flags: list[list[str]] = [[]]  # by depth: the flags that hold until the end of the group

    def translated(self) -> str:
        pieces = []
        depth, repeatable, repeated = 0, False, ""
        while self._at < len(self._pattern):
            letter = self._pattern[self._at]
            if letter in "*+?" or (letter == "{" and _REPEAT.match(self._pattern, self._at)):
                piece = self._repeat()
                if repeated:
                    raise PatternError(f"error parsing regexp: invalid nested repetition operator: `{repeated}{piece}`")
                if not repeatable:
                    raise PatternError(f"error parsing regexp: missing argument to repetition operator: `{piece}`")
                pieces.append(piece)
                repeatable, repeated = False, piece
                continue
            repeated = ""
            if letter == "(":
                piece, opens = self._group()
                depth += opens
                if opens:
                    self._flags.append([])
                else:
                    self._flags[-1].append(piece)
                pieces.append(piece)
                repeatable = False
            elif letter == ")":
                depth -= 1
                if depth < 0:
                    raise PatternError(f"error parsing regexp: unexpected ): `{self._pattern}`")
                pieces.append(")" * len(self._flags.pop()) + self._take(1))
                repeatable = True
            elif letter == "|":
                held = self._flags[-1]
                pieces.append(")" * len(held) + self._take(1) + "".join(held))
                repeatable = False
            elif letter == "[":
                pieces.append(self._class())
                repeatable = True
            elif letter == "\\":
                pieces.append(self._escape())
                repeatable = True
            elif letter == "$":
                self._at += 1
                pieces.append(r"\Z" if not self._multiline else "$")  # Python's $ also stands before a last line feed
            else:
                pieces.append(re.escape(self._take(1)) if letter in "{}#&~ " else self._take(1))
                repeatable = True
        if depth:
            raise PatternError(f"error parsing regexp: missing closing ): `{self._pattern}`")
        return "".join(pieces) + ")" * len(self._flags[0])

    def _take(self, count: int) -> str:
        taken = self._pattern[self._at : self._at + count]
        self._at += count
        return taken

    def _repeat(self) -> str:
        if self._pattern[self._at] == "{":
            match = _REPEAT.match(self._pattern, self._at)
            assert match is not None
            least, most = int(match[1]), int(match[3]) if match[3] else None
            if least > MOST_REPEATS or (most is not None and (most > MOST_REPEATS or most < least)):
                raise PatternError(f"error parsing regexp: invalid repeat count: `{match[0]}`")
            piece = self._take(len(match[0]))
        else:
            piece = self._take(1)
        if self._pattern[self._at : self._at + 1] == "?":
            piece += self._take(1)
        return piece

    def _group(self) -> tuple[str, bool]:
        """Return the beginning of a group, and whether the pattern closes it; flags alone hold until its end."""
        if not self._pattern.startswith("(?", self._at):
            return self._take(1), True
        match = _GROUP.match(self._pattern, self._at)
        if match is None:
            raise PatternError(
                f"error parsing regexp: invalid or unsupported Perl syntax: `{self._pattern[self._at :][:3]}`"
            )
        self._at += len(match[0])
        name, flags, end = match.groups()
        if name is not None:
            if name in self._names:
                raise PatternError(f"error parsing regexp: duplicate capture group name: `{name}`")
            self._names.add(name)
            return f"(?P<{name}>", True
        on, _, off = flags.replace("U", "").partition("-")
        self._multiline |= "m" in on
        on = "".join(dict.fromkeys(on))
        kept = on + (f"-{''.join(letter for letter in dict.fromkeys(off) if letter not in on)}" if off else "")
        kept = kept.removesuffix("-")
        return f"(?{kept}:", end == ":"

    def _class(self) -> str:
        start = self._at
        piece = self._take(1)
        if self._pattern[self._at : self._at + 1] == "^":
            piece += self._take(1)
        first = True
        while self._at < len(self._pattern):
            letter = self._pattern[self._at]
            if letter == "]" and not first:
                return piece + self._take(1)
            first = False
            if self._pattern.startswith("[:", self._at):
                piece += self._named_class()
            elif letter == "\\":
                piece += self._escape(inside=True)
            else:
                piece += "\\" + self._take(1) if letter in "[]&~|" else self._take(1)
        raise PatternError(f"error parsing regexp: missing closing ]: `{self._pattern[start:]}`")

    def _named_class(self) -> str:
        end = self._pattern.find(":]", self._at)
        if end < 0:
            return "\\" + self._take(1)
        written = self._take(end + 2 - self._at)
        name = written[2:-2]
        if name.removeprefix("^") not in _CLASSES or name.startswith("^"):
            raise PatternError(f"error parsing regexp: invalid character class range: `{written}`")
        return _CLASSES[name]

    def _property(self, inside: bool) -> str:
        rest = self._pattern[self._at :]
        written = rest[:3]
        if written.endswith("{"):
            inner, closed, _ = rest.partition("}")
            written = inner + closed
        name = written[3:-1] if written[2:3] == "{" and written.endswith("}") else written[2:]
        found = members(name.removeprefix("^"), (rest[1] == "P") != name.startswith("^"))
        if found is None:
            raise PatternError(f"error parsing regexp: invalid character class range: `{written}`")
        self._at += len(written)
        return found if inside else f"[{found}]"

    def _escape(self, inside: bool = False) -> str:
        rest = self._pattern[self._at :]
        if rest == "\\":
            raise PatternError("error parsing regexp: trailing backslash at end of expression: ``")
        letter = rest[1]
        if letter == "Q" and not inside:
            quoted, _, _ = rest[2:].partition("\\E")
            self._at += 2 + len(quoted) + (2 if "\\E" in rest else 0)
            return f"(?:{re.escape(quoted)})"
        if match := _OCTAL_OR_HEX.match(rest):
            self._at += len(match[0])
            code = int(match[1], 16) if match[1] else int(match[0][2:], 16) if letter == "x" else int(match[0][1:], 8)
            if code > 0x10FFFF:
                raise PatternError(f"error parsing regexp: invalid escape sequence: `{match[0]}`")
            return re.escape(chr(code))
        if letter in "pP":
            return self._property(inside)
        if letter == "z" and not inside:
            self._at += 2
            return r"\Z"
        if letter in _ESCAPES and not (inside and letter in "AB"):
            return self._take(2)
        if letter == "b" and not inside:
            return self._take(2)
        if letter == "C" and not inside:
            self._at += 2
            return "(?s:.)"
        if letter.isascii() and not letter.isalnum():
            self._at += 2
            return re.escape(letter)
        raise PatternError(f"error parsing regexp: invalid escape sequence: `{rest[:2]}`")
