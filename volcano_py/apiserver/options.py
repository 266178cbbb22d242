"""Options of an embedded API server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApiServerOptions:
    """Settings of one server. The defaults suit tests: a free port, no token, plain HTTP."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free port; see `ApiServer.url`."""
    token: str | None = None
    """When set, every request must carry it as a bearer token."""
    ssl_context: ssl.SSLContext | None = None
    history_limit: int = 16384
    """Events kept per resource; older versions are answered with 410 Expired."""
    watch_queue_limit: int = 32768
    """Events a slow watcher may lag behind before it is disconnected."""
    bookmark_interval_s: float = 30.0
    watch_timeout_s: float = 1800.0
    """How long a watch runs if the client gives no timeout."""
    node_lifecycle: bool = False
    """Taint new nodes as not ready and lift the taint when their Ready condition is True."""
    max_body_bytes: int = 16 * 1024 * 1024
    shutdown_timeout_s: float = 5.0
