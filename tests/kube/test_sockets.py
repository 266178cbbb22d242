"""What the kernel is told about our connections."""

import socket

import pytest

from volcano_py.kube.sockets import attentive_socket, notice_dead_peers


def test_the_kernel_sends_keepalive_probes():
    with socket.socket() as sock:
        notice_dead_peers(sock)

        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        asked = {name: sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in options()}
        assert asked == options()
        assert asked["TCP_KEEPIDLE"] + asked["TCP_KEEPINTVL"] * asked["TCP_KEEPCNT"] < 30


def options() -> dict[str, int]:
    wanted = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 25_000}
    return {name: value for name, value in wanted.items() if hasattr(socket, name)}


def test_a_platform_without_the_options_is_no_problem(monkeypatch: pytest.MonkeyPatch):
    for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT"):
        monkeypatch.delattr(socket, name, raising=False)
    with socket.socket() as sock:
        notice_dead_peers(sock)

        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_unix_socket_is_left_as_it_is():
    with socket.socket(socket.AF_UNIX) as sock:
        notice_dead_peers(sock)

        assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_socket_is_made_for_an_address():
    address = socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)[0]
    with attentive_socket(address) as sock:
        assert (sock.family, sock.type) == (socket.AF_INET, socket.SOCK_STREAM)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
