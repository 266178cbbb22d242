"""Answers of HTTP/1.1, however they are cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.kube.http1 import Answer, AnswerReader, Malformed, checked_target, header_lines

LENGTH = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nCONTENT-LENGTH: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n6;name=value\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
)
BARE_CHUNKS = b"HTTP/1.1 200 OK\r\ntransfer-encoding:Chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
NOTHING = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
ANNOUNCED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + LENGTH


def read(pieces: list[bytes]) -> Answer | None:
    """Feed all pieces; nothing but the last may complete the answer."""
    reader = AnswerReader()
    answers = [reader.feed(piece) for piece in pieces]
    assert all(answer is None for answer in answers[:-1])
    return answers[-1]


@pytest.mark.parametrize(
    ("wire", "status", "body"),
    [
        pytest.param(LENGTH, 201, b"hello", id="length"),
        pytest.param(CHUNKED, 200, b"hello world", id="chunks-with-extension-and-trailer"),
        pytest.param(BARE_CHUNKS, 200, b"0123456789", id="chunks"),
        pytest.param(EMPTY, 204, b"", id="no-content"),
        pytest.param(NOTHING, 429, b"", id="length-0"),
        pytest.param(ANNOUNCED, 201, b"hello", id="after-what-announces-it"),
    ],
)
@given(cuts=st.lists(st.integers(1, 200), max_size=12))
def test_an_answer_is_the_same_however_it_is_cut(wire: bytes, status: int, body: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    answer = read([wire[begin:end] for begin, end in itertools.pairwise(edges)])

    assert answer is not None
    assert (answer.status, answer.body, answer.reusable) == (status, body, True)


def test_a_large_chunk_is_looked_at_once_and_not_with_every_piece() -> None:
    reader, piece = AnswerReader(), b"x" * 2**18
    reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % (64 * len(piece)))
    kept = []
    for _ in range(64):
        assert reader.feed(piece) is None
        kept.append(len(reader._buffer))  # what will be looked at again

    answer = reader.feed(b"\r\n0\r\n\r\n")

    assert answer is not None
    assert len(answer.body) == 64 * len(piece)
    assert max(kept) < 2**10


def test_a_header_is_found_by_name_whatever_its_case() -> None:
    answer = read([NOTHING])

    assert answer is not None
    assert (answer.header("Retry-after"), answer.header("After")) == ("7", "")


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", id="said-so"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="old-version"),
    ],
)
def test_a_connection_that_ends_with_its_answer_is_not_used_again(wire: bytes) -> None:
    answer = read([wire])

    assert answer is not None
    assert not answer.reusable


def test_an_answer_without_length_lasts_until_the_connection_ends() -> None:
    reader = AnswerReader()

    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None
    assert reader.feed(b"lo") is None
    answer = reader.end()

    assert answer is not None
    assert (answer.body, answer.reusable) == (b"hello", False)


@pytest.mark.parametrize("wire", [b"", b"HTTP/1.1 200", LENGTH[:-1], CHUNKED[:-1]])
def test_a_truncated_answer_is_refused(wire: bytes) -> None:
    reader = AnswerReader()
    assert reader.feed(wire) is None
    assert reader.end() is None
    assert reader.begun == bool(wire)


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="another-protocol"),
        pytest.param(b"HTTP/2 200\r\n\r\n", id="another-version"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", id="upgrade"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", id="negative-length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", id="encoding"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", id="negative-chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", id="chunk-without-size"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", id="long-chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000, id="endless-size"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, id="endless-header"),
        pytest.param(LENGTH + b"!", id="more-than-the-length"),
        pytest.param(CHUNKED + b"!", id="more-than-the-chunks"),
    ],
)
def test_an_invalid_answer_is_refused(wire: bytes) -> None:
    with pytest.raises(Malformed):
        AnswerReader().feed(wire)


@pytest.mark.parametrize("target", ["/a b", "/a\r\nHost: evil", "/ä", "/a\0"])
def test_a_path_cannot_become_another_request(target: str) -> None:
    with pytest.raises(ValueError, match="percent-encoded"):
        checked_target(target)


def test_a_header_cannot_become_two() -> None:
    with pytest.raises(ValueError, match="header Authorization has a line break"):
        header_lines({"Authorization": "Bearer x\r\nImpersonate-User: admin"})
