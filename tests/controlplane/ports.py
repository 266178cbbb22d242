"""Free loopback ports for servers that are started, stopped and started again on the same port."""

from __future__ import annotations

import contextlib
import random
import socket
from collections import deque
from pathlib import Path

_LOWEST = 15000
_DEFAULT_EPHEMERAL = 32768
_TRIES = 1000  # sampling all ports would take a tenth of a second
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_rng = random.Random()  # not the global generator, which may be seeded: each process must draw different ports


_given: deque[int] = deque(maxlen=1000)
"""Ports that this process has given away: a program that starts slowly has not taken its port yet."""


def free_ports(count: int) -> list[int]:
    """Return `count` different free ports of 127.0.0.1.

    They lie below the kernel's range for outgoing connections: otherwise a connection could take the port of a server
    that is being restarted.
    """
    low = _DEFAULT_EPHEMERAL
    with contextlib.suppress(OSError):
        low = int(_RANGE_FILE.read_text().split()[0])
    # If the system leaves no port below that range, any port will do.
    candidates = range(_LOWEST, low) if low >= _LOWEST + 1000 else range(_LOWEST, 60000)
    ports: list[int] = []
    for port in _rng.sample(candidates, k=min(len(candidates), count + _TRIES)):
        if port not in _given and _is_free(port):
            ports.append(port)
            _given.append(port)
        if len(ports) == count:
            return ports
    raise OSError(f"fewer than {count} free ports on 127.0.0.1 between {candidates[0]} and {candidates[-1]}")


def free_port() -> int:
    """Return one of :func:`free_ports`."""
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
