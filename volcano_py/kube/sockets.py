"""Options of sockets: how soon the kernel notices that nobody is at the other end any more.

A balancer that forgets a connection, or a machine that vanishes, sends no word. Without these options a connection that
only waits for data waits for ever, and one that has sent something for about a quarter of an hour.
"""

import socket
from typing import Any, Final

IDLE_S: Final = 10
"""Silence after which the kernel asks the other end whether it is there."""
PROBE_S: Final = 5
PROBES: Final = 3
UNACKNOWLEDGED_S: Final = 25
"""How long what was sent, probes included, may stay unacknowledged."""

_OPTIONS: Final = {
    "TCP_KEEPIDLE": IDLE_S,
    "TCP_KEEPALIVE": IDLE_S,  # the same on macOS
    "TCP_KEEPINTVL": PROBE_S,
    "TCP_KEEPCNT": PROBES,
    "TCP_USER_TIMEOUT": UNACKNOWLEDGED_S * 1000,
}


def notice_dead_peers(sock: socket.socket) -> None:
    """Make a TCP connection break within half a minute when the other end is gone.

    Options that the platform lacks are left out; the limits of the requests themselves still hold.
    """
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def attentive_socket(address: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
    """Return a socket for an address as getaddrinfo gives it, which notices dead peers."""
    family, kind, protocol = address[:3]
    sock = socket.socket(family, kind, protocol)
    try:
        notice_dead_peers(sock)
    except BaseException:
        sock.close()
        raise
    return sock
