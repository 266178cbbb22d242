"""Parses HTTP/1.1 answers (RFC 9112) from bytes that arrive in pieces of any size; it has no sockets."""

import re
from typing import Final, NamedTuple

_HEAD_END: Final = b"\r\n\r\n"
_MAX_HEAD: Final = 2**16
_LONGEST_SIZE_LINE: Final = 2**10
_VERSION: Final = re.compile(rb"HTTP/1\.[01] (\d\d\d)(?: |$)")
_UNSAFE: Final = re.compile(r"[^\x21-\x7e]")
_LINE_BREAK: Final = re.compile(r"[\r\n\0]")


class Malformed(Exception):
    """The server's bytes are not an HTTP/1.1 answer."""


class Answer(NamedTuple):
    """A complete answer."""

    status: int
    head: bytes  # status line and headers, as they came
    body: bytes
    reusable: bool  # whether the connection may carry another request

    def header(self, name: str) -> str:
        """Return the first header of a name, "" if there is none."""
        return _header(self.head, self.head.lower(), name.lower().encode())


def checked_target(target: str) -> bytes:
    """Return a path with its query in wire form; raise ValueError if it could end the request line early."""
    if _UNSAFE.search(target):
        raise ValueError(f"path {target!r} has characters that must be percent-encoded")
    return target.encode("ascii")


def header_lines(headers: dict[str, str]) -> bytes:
    """Return headers in wire form; raise ValueError for a value that would begin another header."""
    for name, value in headers.items():
        if _LINE_BREAK.search(value):
            raise ValueError(f"header {name} has a line break in its value: remove it (for a token: check its source)")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")


class AnswerReader:
    """Takes bytes as they arrive and returns one answer at a time; no bytes may follow before the next request."""

    __slots__ = ("_body", "_buffer", "_chunk_ends", "_chunked", "_head", "_needed", "_reusable", "_status")

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._buffer = b""  # bytes that are not parsed yet
        self._head: bytes | None = None
        self._status = 0
        self._reusable = False
        self._chunked = False
        self._chunk_ends = False  # whether the line break after a chunk is still to come
        self._needed = 0  # bytes still to come of the body or the present chunk; -1: until the connection ends
        self._body: list[bytes] = []

    @property
    def begun(self) -> bool:
        """Whether a part of an answer has arrived."""
        return bool(self._buffer) or self._head is not None

    def feed(self, data: bytes) -> Answer | None:
        """Take bytes; return the answer once it is complete. Raise Malformed if it cannot become one."""
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        while self._head is None:
            end = data.find(_HEAD_END)
            if end < 0:
                if len(data) > _MAX_HEAD:
                    raise Malformed(f"headers of more than {_MAX_HEAD} bytes")
                self._buffer = data
                return None
            self._take_head(data[:end])
            data = data[end + 4 :]
        if self._chunked:
            return self._take_chunks(data)
        if self._needed >= 0:
            if len(data) > self._needed:
                raise Malformed("bytes after the end of the answer")
            self._needed -= len(data)
        if data:
            self._body.append(data)
        return self._whole() if self._needed == 0 else None

    def end(self) -> Answer | None:
        """Take the end of the connection; return the answer that ends with it, None if there is none."""
        if self._head is None or self._chunked or self._needed >= 0:
            return None  # the answer is incomplete
        return self._whole()

    def _take_head(self, head: bytes) -> None:
        matched = _VERSION.match(head)
        if matched is None:
            raise Malformed(f"{head[:80]!r} is not a status line")
        status = int(matched[1])
        if 100 <= status < 200:
            if status == 101:
                raise Malformed("the server switches to another protocol without a request for it")
            return  # an interim answer (1xx): the final one follows
        lower = head.lower()
        connection = _header(head, lower, b"connection").lower()
        self._head, self._status = head, status
        self._reusable = "close" not in connection and (head[7:8] == b"1" or "keep-alive" in connection)
        encoding = _header(head, lower, b"transfer-encoding").lower()
        if status in (204, 304):
            self._needed = 0
        elif encoding:
            if encoding != "chunked":
                raise Malformed(f"transfer encoding {encoding!r}")
            self._chunked = True
        elif length := _header(head, lower, b"content-length"):
            if not (length.isascii() and length.isdigit()):
                raise Malformed(f"content length {length!r}")
            self._needed = int(length)
        else:
            self._needed, self._reusable = -1, False

    def _take_chunks(self, data: bytes) -> Answer | None:
        """Take bytes of a chunked body; each byte is scanned once, however large a chunk is."""
        at = 0
        while True:
            if self._needed:
                piece = data[at : at + self._needed]
                if piece:
                    self._body.append(piece)
                at += len(piece)
                self._needed -= len(piece)
                if self._needed:
                    return None
                self._chunk_ends = True
            if self._chunk_ends:
                line_break = data[at : at + 2]
                if not b"\r\n".startswith(line_break):
                    raise Malformed("a chunk that is longer than its size")
                if len(line_break) < 2:
                    break
                self._chunk_ends = False
                at += 2
            line_end = data.find(b"\r\n", at)
            if line_end < 0:
                if len(data) - at > _LONGEST_SIZE_LINE:
                    raise Malformed("a chunk without its size")
                break
            size = _chunk_size(data[at:line_end])
            if size == 0:
                # Trailers may follow; the answer ends with an empty line.
                end = line_end if data.startswith(_HEAD_END, line_end) else data.find(_HEAD_END, line_end)
                if end < 0:
                    if len(data) - at > _MAX_HEAD:
                        raise Malformed(f"trailers of more than {_MAX_HEAD} bytes")
                    break
                if len(data) > end + 4:
                    raise Malformed("bytes after the end of the answer")
                self._needed = 0
                return self._whole()
            self._needed = size
            at = line_end + 2
        self._buffer = data[at:]
        return None

    def _whole(self) -> Answer:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        answer = Answer(self._status, self._head or b"", body, self._reusable)
        self._reset()
        return answer


def _header(head: bytes, lower: bytes, name: bytes) -> str:
    """Return the value of a header; the search skips the status line."""
    at = lower.find(b"\r\n" + name + b":")
    if at < 0:
        return ""
    begin = at + len(name) + 3
    end = head.find(b"\r\n", begin)
    return (head[begin:] if end < 0 else head[begin:end]).strip().decode("latin-1")


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    try:
        if not digits or digits[:1] in b"+-" or b"_" in digits:
            raise ValueError
        return int(digits, 16)
    except ValueError:
        raise Malformed(f"chunk size {line[:40]!r}") from None
