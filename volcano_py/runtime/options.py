"""Parses the values of flags: listen addresses and durations, in the form that Volcano's programs use."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from volcano_py.api.duration import DurationError, parse_go_duration

_LAST_PORT: Final = 65535
_MINUTE: Final = 60 * 10**9  # nanoseconds
_HOUR: Final = 60 * _MINUTE


class OptionError(ValueError):
    """The value of a flag cannot be read; the message says how to write it."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a server listens; an empty host means every interface, port 0 a free port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return ``host:port`` as it is written in a flag."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str) -> ListenAddress:
    """Read ``:8080``, ``127.0.0.1:0`` or ``[::1]:8080``."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed:
        host = host[1:-1]
    plain_port = port.isascii() and port.isdigit()
    if not colon or not plain_port or int(port) > _LAST_PORT or (":" in host and not bracketed):
        raise OptionError(f"{text!r} is not a listen address: write HOST:PORT, :PORT or [IPv6]:PORT, such as :8080")
    return ListenAddress(host, int(port))


def parse_port(text: str) -> int:
    """Read a port to listen on; 0 means a free port."""
    if not (text.isascii() and text.isdigit()) or int(text) > _LAST_PORT:
        raise OptionError(f"{text!r} is not a port: write a number from 0 to {_LAST_PORT}")
    return int(text)


def parse_duration(text: str) -> float:
    """Read a duration such as ``1s``, ``500ms``, ``1h30m`` or ``0`` and return seconds."""
    try:
        return parse_go_duration(text.strip())
    except DurationError as error:
        raise OptionError(str(error)) from error


def format_duration(seconds: float) -> str:
    """Write seconds as Go does: ``1h30m0s``, ``1.5s``, ``500ms``, ``0s``."""
    nanoseconds = round(Decimal(repr(seconds)) * 10**9)
    sign = "-" if nanoseconds < 0 else ""
    rest = abs(nanoseconds)
    if rest == 0:
        return "0s"
    for unit, size, below in (("ns", 1, 10**3), ("µs", 10**3, 10**6), ("ms", 10**6, 10**9)):
        if rest < below:
            return f"{sign}{_plain(Decimal(rest) / size)}{unit}"
    hours, rest = divmod(rest, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    text = f"{_plain(Decimal(rest) / 10**9)}s"
    if minutes or hours:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _plain(value: Decimal) -> str:
    """Write a number without an exponent and without trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
