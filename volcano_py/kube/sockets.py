"""Socket options: how soon the kernel notices that the other end is gone.

A balancer that forgets a connection, or a machine that vanishes, sends nothing. Without these options a connection that
only waits for data waits for ever, and a connection with unacknowledged data waits for about a quarter of an hour.
"""

import socket
from typing import Any, Final

IDLE_S: Final = 10
"""Silence after which the kernel probes the other end."""
PROBE_S: Final = 5
PROBES: Final = 3
UNACKNOWLEDGED_S: Final = 25
"""How long sent data, probes included, may stay unacknowledged."""

_OPTIONS: Final = {
    "TCP_KEEPIDLE": IDLE_S,
    "TCP_KEEPALIVE": IDLE_S,  # the same on macOS
    "TCP_KEEPINTVL": PROBE_S,
    "TCP_KEEPCNT": PROBES,
    "TCP_USER_TIMEOUT": UNACKNOWLEDGED_S * 1000,
}


def notice_dead_peers(sock: socket.socket) -> None:
    """Make a TCP connection break within half a minute when the other end is gone.

    Options that the platform lacks are left out; the time limits of requests still apply.
    """
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def attentive_socket(address: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
    """Return a socket that notices dead peers, for an address from getaddrinfo."""
    family, kind, protocol = address[:3]
    sock = socket.socket(family, kind, protocol)
    try:
        notice_dead_peers(sock)
    except BaseException:
        sock.close()
        raise
    return sock
