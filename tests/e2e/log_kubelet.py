"""The endpoint of a kubelet at which the API server reads logs: `/containerLogs/NAMESPACE/POD/CONTAINER` over HTTPS.

A node that names it in its status, see `serve_logs_of`, has logs; what pods have written is up to the test.
"""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.controlplane.certificates import Authority, write_secret
from tests.e2e.control_plane import ControlPlane

MERGE = "application/merge-patch+json"


class Asked(NamedTuple):
    """What the API server has asked for."""

    namespace: str
    pod: str
    container: str
    query: dict[str, str]


class LogKubelet:
    """Lines by pod; a pod without lines waits to start."""

    def __init__(self, folder: Path) -> None:
        self.lines: dict[str, list[str]] = {}
        self.asked: list[Asked] = []
        self.more = threading.Condition()
        self.ended: set[str] = set()
        """Pods whose log comes to an end when it is followed."""
        pair = Authority().server()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(write_secret(folder / "kubelet.pem", pair.certificate + pair.key))
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kubelet.answer(self)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> LogKubelet:
        """Serve."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def serve_logs_of(self, plane: ControlPlane, node: str) -> None:
        """Let the status of a node name this endpoint."""
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_port}},
        }
        plane.request("PATCH", f"/api/v1/nodes/{node}/status", {"status": status}, content_type=MERGE)

    def write(self, pod: str, *lines: str) -> None:
        """Let a pod write lines."""
        with self.more:
            self.lines.setdefault(pod, []).extend(lines)
            self.more.notify_all()

    def end(self, *pods: str) -> None:
        """Let pods end."""
        with self.more:
            self.ended.update(pods)
            self.more.notify_all()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request as a kubelet does."""
        parts = urlsplit(request.path)
        _, endpoint, namespace, pod, container = parts.path.split("/")
        assert endpoint == "containerLogs"
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append(Asked(namespace, pod, container, query))
        if pod not in self.lines:
            text = f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating'
            self._begin(request, 400)
            request.wfile.write(text.encode())
            return
        self._begin(request, 200)
        with self.more:
            seen = len(self.lines[pod])
            shown = self.lines[pod][-int(query["tailLines"]) :] if "tailLines" in query else list(self.lines[pod])
        while True:
            request.wfile.write("".join(f"{line}\n" for line in shown).encode())
            request.wfile.flush()
            with self.more:
                if query.get("follow") != "true" or (pod in self.ended and seen == len(self.lines[pod])):
                    return
                self.more.wait(10.0)
                shown, seen = self.lines[pod][seen:], len(self.lines[pod])

    @staticmethod
    def _begin(request: BaseHTTPRequestHandler, code: int) -> None:
        request.send_response(code)
        request.send_header("Content-Type", "text/plain")
        request.end_headers()
