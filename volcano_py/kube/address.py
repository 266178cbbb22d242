"""Says whether a text is the address of an API server."""

from urllib.parse import urlsplit


def is_address(text: str) -> bool:
    """Say whether a text is ``http://HOST[:PORT]`` or ``https://HOST[:PORT]``, with a path or without.

    The name need not exist, but it must be one that can be looked up.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port  # the port is read only here, and may be no number
        host.encode("idna")
    except ValueError:  # UnicodeError, too
        return False
    return parts.scheme in ("http", "https") and host != "" and port != 0 and not any(map(str.isspace, text))
