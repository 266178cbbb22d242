"""What counts as the address of an API server."""

import pytest

from volcano_py.kube.address import is_address


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost",
        "https://10.0.0.1:6443",
        "https://[::1]:6443",
        "https://kube.example.com/prefix",
        "http://ü.x:1",
    ],
)
def test_addresses(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "ftp://localhost",
        "http://",
        "https://:6443",
        "http://foo:bar",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://a..b:80",
        "http://[::1",
        "http://a b:80",
    ],
)
def test_no_addresses(text: str) -> None:
    assert not is_address(text)
