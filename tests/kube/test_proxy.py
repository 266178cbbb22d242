"""Which proxy leads to a server."""

import pytest

from volcano_py.kube.proxy import objection, proxy_from_environment, without_password

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("address", "environ", "expected"),
    [
        pytest.param("https://api:6443", {}, None, id="none-set"),
        pytest.param("https://api:6443", {"HTTPS_PROXY": PROXY}, PROXY, id="for-https"),
        pytest.param("http://api:6443", {"HTTPS_PROXY": PROXY}, None, id="of-another-scheme"),
        pytest.param("https://api", {"HTTPS_PROXY": "x", "https_proxy": PROXY}, PROXY, id="small-letters-win"),
        pytest.param("https://api", {"HTTPS_PROXY": "proxy:3128"}, PROXY, id="scheme-may-be-left-out"),
        pytest.param("http://127.0.0.1:80", {"HTTP_PROXY": PROXY}, None, id="loopback-address"),
        pytest.param("http://localhost:80", {"HTTP_PROXY": PROXY}, None, id="loopback-name"),
        pytest.param("http://[::1]:80", {"HTTP_PROXY": PROXY}, None, id="loopback-ipv6"),
        pytest.param("https://a.x", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None, id="no-proxy-star"),
        pytest.param("https://a.x", {"HTTPS_PROXY": PROXY, "NO_PROXY": "b, x"}, None, id="member-of-a-domain"),
        pytest.param("https://a.x", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".x"}, None, id="member-by-dot"),
        pytest.param("https://x", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".x"}, PROXY, id="dot-excludes-members-only"),
        pytest.param("https://ax", {"HTTPS_PROXY": PROXY, "NO_PROXY": "x"}, PROXY, id="similar-name"),
        pytest.param("https://10.96.0.1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, None, id="network"),
        pytest.param("https://11.0.0.1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, PROXY, id="other-network"),
        pytest.param("https://a:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "a:6443"}, None, id="host-and-port"),
        pytest.param("https://a:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "a:443"}, PROXY, id="host-and-other-port"),
        pytest.param("https://a", {"HTTPS_PROXY": PROXY, "NO_PROXY": "a:443"}, None, id="host-and-usual-port"),
        pytest.param("https://[fd00::1]:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "[fd00::1]"}, None, id="ipv6"),
        pytest.param("https://[fd00::1]:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "fd00::1"}, None, id="bare-ipv6"),
        pytest.param("https://[fd00::1]:64", {"HTTPS_PROXY": PROXY, "NO_PROXY": "[fd00::1]:64"}, None, id="ipv6-port"),
        pytest.param("https://[fd00::1]", {"HTTPS_PROXY": PROXY, "NO_PROXY": "[fd00::1]:6"}, PROXY, id="ipv6-other"),
    ],
)
def test_proxy(address: str, environ: dict[str, str], expected: str | None) -> None:
    assert proxy_from_environment(address, environ) == expected


@pytest.mark.parametrize(
    ("proxy", "shown"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("http://me:secret@proxy:3128/", "http://proxy:3128/"),
        ("http://me:sec@ret@proxy", "http://proxy"),
        ("me:secret@proxy:3128", "proxy:3128"),
    ],
)
def test_messages_do_not_show_the_password_of_a_proxy(proxy: str, shown: str) -> None:
    assert without_password(proxy) == shown


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        ("http://me:secret@proxy", ""),
        ("https://[fd00::1]:3128", ""),
        ("http://me:secret@proxy:x", "proxy http://proxy:x cannot be used: it is no address; write http://HOST:PORT"),
        ("http://[proxy", "proxy http://[proxy cannot be used: it is no address; write http://HOST:PORT"),
        (
            "socks5://me:secret@proxy:1080",
            "proxy socks5://proxy:1080 cannot be used: only http:// and https:// proxies are supported",
        ),
    ],
)
def test_which_proxies_can_be_used(proxy: str, why: str) -> None:
    assert objection(proxy) == why
