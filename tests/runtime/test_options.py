"""How flags are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.runtime.options import (
    ListenAddress,
    OptionError,
    format_duration,
    parse_duration,
    parse_listen_address,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        pytest.param(":8080", "", 8080, id="every-interface"),
        pytest.param("127.0.0.1:0", "127.0.0.1", 0, id="free-port"),
        pytest.param("localhost:11251", "localhost", 11251, id="name"),
        pytest.param("[::1]:8080", "::1", 8080, id="ipv6"),
    ],
)
def test_a_listen_address_is_read_and_written_alike(text: str, host: str, port: int) -> None:
    address = parse_listen_address(text)

    assert address == ListenAddress(host, port)
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "8080", "host", "host:", "host:http", ":-1", ":65536", "::1:8080", ":8\u0660"])
def test_what_is_not_a_listen_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(OptionError, match="such as :8080"):
        parse_listen_address(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("500ms", 0.5),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("0", 0.0),
        ("-2m", -120.0),
        ("+10s", 10.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("100us", 0.0001),
        ("100µs", 0.0001),
        ("1ns", 1e-9),
        ("1h1s1h", 7201.0),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "s", "1 s", "1d", "1s2", "--1s", ".s", "1e3s", "00"])
def test_what_is_not_a_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(OptionError, match="such as 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1, "1s"),
        (1.5, "1.5s"),
        (0.5, "500ms"),
        (0.0015, "1.5ms"),
        (0.0001, "100µs"),
        (2e-9, "2ns"),
        (60, "1m0s"),
        (5400, "1h30m0s"),
        (-90, "-1m30s"),
        (100, "1m40s"),
        (10, "10s"),
    ],
)
def test_durations_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_written_duration_is_read_back(nanoseconds: int) -> None:
    seconds = nanoseconds / 10**9

    assert parse_duration(format_duration(seconds)) == seconds
