"""Finds the proxy for a server, once; reading the environment at every request would cost more than the request."""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from volcano_py.kube.address import is_address

_PORTS: Final = {"http": 80, "https": 443}


def proxy_from_environment(address: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy that the environment names for this address, or None.

    ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY`` count as in Go programs; names in small letters win. NO_PROXY lists
    hosts, domain suffixes, ``host:port``, addresses, networks such as ``10.0.0.0/8``, or ``*``. Loopback addresses
    never use a proxy.
    """
    parts = urlsplit(address)
    host, port = (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme)
    proxy = _read(environ, f"{parts.scheme}_proxy")
    if not proxy or _is_loopback(host):
        return None
    if any(_excluded(host, port, entry.strip().lower()) for entry in _read(environ, "no_proxy").split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def without_password(proxy: str) -> str:
    """Return a proxy as messages may show it: its address often has a user and a password."""
    scheme, separator, rest = proxy.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"


def objection(proxy: str) -> str:
    """Return why a proxy cannot be used, "" if it can."""
    if is_address(proxy):
        return ""
    if proxy.partition("://")[0] in _PORTS:
        return f"proxy {without_password(proxy)} cannot be used: it is no address; write http://HOST:PORT"
    return f"proxy {without_password(proxy)} cannot be used: only http:// and https:// proxies are supported"


def _read(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _excluded(host: str, port: int | None, entry: str) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return ip_address(host) in ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, entry_port = entry.rpartition(":")
    if colon and entry_port.isdigit() and (":" not in name or name.endswith("]")):
        if port != int(entry_port):
            return False
        entry = name
    entry = entry.removeprefix("[").removesuffix("]")
    # ".example.com" excludes only the domain's members; "example.com" excludes the domain and its members.
    suffix = entry.removeprefix("*")
    return host == suffix or host.endswith(suffix if suffix.startswith(".") else f".{suffix}")
