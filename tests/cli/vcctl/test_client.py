"""The client against servers that page, break off, refuse, and stream."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from volcano_py.client import shapes
from volcano_py.client.access import Access
from volcano_py.client.api import Api
from volcano_py.client.problem import ApiProblem, Problem, Unreachable
from volcano_py.kube.resource import NODES, PODS, VCJOBS

Answer = tuple[int, bytes]
CUT = b"..."
"""What a body ends with that is one byte shorter than the server has promised."""
GZIP = b"\x1f\x8b"
"""What a packed body begins with."""


class Handler(BaseHTTPRequestHandler):
    """Answers as the test says; keeps what it was asked."""

    protocol_version = "HTTP/1.1"
    answers: ClassVar[list[Answer]] = []
    asked: ClassVar[list[tuple[str, dict[str, list[str]], dict[str, str]]]] = []

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.asked.append((parts.path, parse_qs(parts.query), dict(self.headers)))
        code, body = self.answers.pop(0)
        self.send_response(code)
        if code in (429, 503):
            self.send_header("Retry-After", "1")
        if body.startswith(GZIP):
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body) + body.endswith(CUT)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = body.endswith(CUT)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def api() -> Iterator[Api]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Handler.answers, Handler.asked = [], []
    api = Api(lambda: Access(f"http://127.0.0.1:{server.server_port}/base", "Bearer secret", origin="a test"), 3.0)
    yield api
    api.close()
    server.shutdown()
    server.server_close()
    thread.join(10)


def a_list(*names: str, more: str = "") -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return 200, json.dumps({"items": items, "metadata": {"resourceVersion": "7", "continue": more}}).encode()


def a_refusal(code: int, message: str, reason: str = "") -> Answer:
    return code, json.dumps({"kind": "Status", "message": message, "reason": reason, "code": code}).encode()


def test_a_list_is_read_page_by_page(api: Api) -> None:
    Handler.answers = [a_list("a", "b", more="next"), a_list("c")]

    assert [one["metadata"]["name"] for one in api.list(VCJOBS, "ns", labelSelector="x=y")] == ["a", "b", "c"]
    assert api.version == "7"
    assert [query.get("continue") for _, query, _ in Handler.asked] == [None, ["next"]]
    path, query, headers = Handler.asked[0]
    assert path == "/base/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs"
    assert query["labelSelector"] == ["x=y"]
    assert headers["Authorization"] == "Bearer secret"


def test_an_answer_that_breaks_off_is_no_strange_server(api: Api) -> None:
    Handler.answers = [(200, b'{"items": [' + CUT)]

    with pytest.raises(Unreachable, match="the answer of the API server broke off"):  # `vcctl job wait` asks again
        api.list(VCJOBS)


def test_a_list_that_is_too_old_to_go_on_is_read_again_in_one_piece(api: Api) -> None:
    Handler.answers = [a_list("a", more="next"), a_refusal(410, "too old"), a_list("b", "c")]

    assert [one["metadata"]["name"] for one in api.list(VCJOBS)] == ["b", "c"]
    assert "limit" not in Handler.asked[2][1]


def test_pages_of_a_list_that_is_too_old_go_on_with_a_new_one_without_repeating(api: Api) -> None:
    Handler.answers = [a_list("a", more="next"), a_refusal(410, "too old"), a_list("a", "b", "c")]

    pages = [[one["metadata"]["name"] for one in page] for page in api.pages(VCJOBS)]

    assert pages == [["a"], ["b", "c"]]
    assert Handler.asked[0][1]["limit"] == ["500"]
    assert Handler.asked[1][1]["continue"] == ["next"]
    assert "limit" not in Handler.asked[2][1]


def test_a_refusal_of_the_first_page_is_told(api: Api) -> None:
    Handler.answers = [a_refusal(403, "no")]

    with pytest.raises(ApiProblem, match=r"^no$"):
        next(api.pages(VCJOBS))


def test_large_answers_may_come_packed_and_logs_may_not(api: Api) -> None:
    code, body = a_list("a")
    Handler.answers = [(code, gzip.compress(body)), (403, gzip.compress(a_refusal(403, "no")[1])), (200, b"line\n")]

    assert [one["metadata"]["name"] for one in api.list(VCJOBS)] == ["a"]
    with pytest.raises(ApiProblem, match=r"^no$"):
        api.list(VCJOBS)
    assert list(api.text("/log")) == ["line\n"]
    assert [headers["Accept-Encoding"] for _, _, headers in Handler.asked] == ["gzip", "gzip", "identity"]


def test_a_packed_answer_that_is_broken_is_no_answer(api: Api) -> None:
    Handler.answers = [(200, gzip.compress(b"{}")[:-9])]

    with pytest.raises(Problem, match="does not answer like a Kubernetes API server: its answer cannot be unpacked"):
        api.list(VCJOBS)


def test_a_shape_says_which_parts_of_objects_are_read(api: Api) -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "a", "annotations": {"scheduling.k8s.io/group-name": "g", "b": "c"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }
    pages = [
        {"items": [pod], "metadata": {"continue": "next", "resourceVersion": "7"}},
        {"items": None, "metadata": {"resourceVersion": "7"}},
    ]
    Handler.answers = [(200, json.dumps(page).encode()) for page in pages]

    assert api.list_of(shapes.PlacedPod, PODS, fieldSelector="spec.nodeName!=") == [
        {
            "metadata": {"name": "p", "namespace": "a", "annotations": {"scheduling.k8s.io/group-name": "g"}},
            "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": 1}}}]},
            "status": {"phase": "Running"},
        }
    ]
    assert [query["fieldSelector"] for _, query, _ in Handler.asked] == [["spec.nodeName!="]] * 2
    assert api.version == "7"


@pytest.mark.parametrize("body", [b"hello", b"[]", b'{"items": 3}', b'{"items": [{"metadata": 3}]}'])
def test_a_list_that_has_not_its_shape_names_the_server(api: Api, body: bytes) -> None:
    Handler.answers = [(200, body)]

    with pytest.raises(Problem, match="does not answer like a Kubernetes API server"):
        api.list_of(shapes.Node, NODES)


def test_objects_of_a_list_know_their_kind(api: Api) -> None:
    Handler.answers = [a_list("a")]

    assert api.list(VCJOBS)[0]["kind"] == "Job"


@pytest.mark.parametrize(
    ("details", "about"),
    [
        ({"group": "bus.volcano.sh", "kind": "commands"}, "commands.bus.volcano.sh"),
        ({"kind": "events"}, "events"),
        (None, ""),
    ],
)
def test_a_refusal_says_what_it_is_about(api: Api, details: dict[str, str] | None, about: str) -> None:
    status = {"kind": "Status", "message": "no", "code": 403, "details": details}
    Handler.answers = [(403, json.dumps(status).encode())]

    with pytest.raises(ApiProblem) as problem:
        api.get(VCJOBS, "a", "ns")
    assert problem.value.about == about


def test_a_refusal_has_the_servers_own_sentence(api: Api) -> None:
    Handler.answers = [
        a_refusal(403, 'jobs is forbidden: User "x" cannot', "Forbidden"),
        (502, b"<html><h1>bad\n gateway</h1></html>"),
        (500, b"no\n space"),
    ]

    with pytest.raises(ApiProblem, match='jobs is forbidden: User "x" cannot') as problem:
        api.get(VCJOBS, "a", "ns")
    assert (problem.value.status, problem.value.reason) == (403, "Forbidden")
    with pytest.raises(ApiProblem, match=r"^a proxy before .*, or another server, answered 502 Bad Gateway$"):
        api.get(VCJOBS, "a", "ns")  # nobody reads a page for browsers in a terminal
    with pytest.raises(ApiProblem, match=r"^no space$"):
        api.get(VCJOBS, "a", "ns")


def test_a_server_that_asks_for_patience_is_asked_again_until_the_time_is_over(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    passed = [0.0]
    monkeypatch.setattr("volcano_py.client.api.time.sleep", slept.append)
    monkeypatch.setattr("volcano_py.client.api.time.monotonic", lambda: passed[0] + sum(slept))
    busy = a_refusal(429, "storage is (re)initializing", "TooManyRequests")
    Handler.answers = [busy, (503, b"begins"), a_list("a"), busy, busy, busy, busy]

    assert len(api.list(VCJOBS)) == 1
    assert slept == [1.0, 1.0]
    with pytest.raises(ApiProblem, match="storage is"):
        api.list(VCJOBS)
    assert slept == [1.0] * 5  # three seconds are the limit of this client


@pytest.mark.parametrize("body", [b"hello", b"[]"])
def test_a_server_that_is_no_api_server_is_named(api: Api, body: bytes) -> None:
    Handler.answers = [(200, body)]

    with pytest.raises(Problem, match="does not answer like a Kubernetes API server"):
        api.get(VCJOBS, "a", "ns")


def test_a_log_is_read_line_by_line(api: Api) -> None:
    Handler.answers = [(200, b"one\ntwo\xff\nthree")]

    assert list(api.text(PODS.item("p", "ns", "log"), {"container": "c"})) == ["one\n", "two\ufffd\n", "three"]
    assert Handler.asked[0][0] == "/base/api/v1/namespaces/ns/pods/p/log"


def test_a_watch_goes_on_where_it_ended_and_shows_no_bookmarks(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("volcano_py.client.api._APART_S", 0.0)

    def change(kind: str, version: str) -> bytes:
        return json.dumps({"type": kind, "object": {"metadata": {"resourceVersion": version}}}).encode() + b"\n"

    Handler.answers = [
        (200, change("ADDED", "8") + change("BOOKMARK", "12")),
        (200, change("DELETED", "13")),
        (200, json.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old"}}).encode()),
    ]
    api.version = "7"
    seen = api.watch(VCJOBS, "ns")

    assert [next(seen)[0], next(seen)[0]] == ["ADDED", "DELETED"]
    assert [query["resourceVersion"] for _, query, _ in Handler.asked] == [["7"], ["12"]]
    with pytest.raises(ApiProblem, match="too old"):
        next(seen)


def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("volcano_py.client.api._APART_S", 0.2)
    Handler.answers = [(200, b"")] * 3 + [(410, b"gone")]
    began = time.monotonic()

    with pytest.raises(ApiProblem):
        next(api.watch(VCJOBS, "ns"))

    assert time.monotonic() - began >= 0.6


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (b'{"type": "MODIF', Unreachable, "broke off"),
        (b"<html>\n", Problem, "does not answer like a Kubernetes API server"),
        (b"7\n", Problem, "does not answer like a Kubernetes API server"),
    ],
)
def test_a_watch_that_brings_no_changes_is_a_problem(api: Api, body: bytes, kind: type[Problem], says: str) -> None:
    Handler.answers = [(200, body)]

    with pytest.raises(kind, match=says):
        next(api.watch(VCJOBS, "ns"))


def test_a_server_that_does_not_answer_is_given_up(api: Api) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        slow = Api(lambda: Access(f"http://127.0.0.1:{port}", origin="--master"), 0.2)
        with pytest.raises(Problem, match=f"the API server http://127.0.0.1:{port} does not answer in time; check"):
            slow.get(VCJOBS, "a", "ns")


def test_a_name_that_does_not_resolve_is_named() -> None:
    nowhere = Api(lambda: Access("http://no-such-host.invalid", origin="--master"), 5.0)

    with pytest.raises(Problem, match=r"has a name that cannot be resolved|cannot be reached"):
        nowhere.get(VCJOBS, "a", "ns")


# TLS: a certificate for another name, and a proxy on the way


class Tunnels(BaseHTTPRequestHandler):
    """A proxy that knows one destination; it copies bytes both ways."""

    destination: ClassVar[int] = 0
    wanted: ClassVar[list[str]] = []
    users: ClassVar[list[str | None]] = []

    def do_CONNECT(self) -> None:
        self.wanted.append(self.path)
        self.users.append(self.headers.get("Proxy-Authorization"))
        self.send_response(200)
        self.end_headers()
        with socket.create_connection(("127.0.0.1", self.destination), timeout=5) as there:
            back = threading.Thread(target=self._copy, args=(there, self.connection), daemon=True)
            back.start()
            self._copy(self.connection, there)
            back.join(5)
        self.close_connection = True

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of itself for the name inner.name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "inner.name")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("inner.name")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown, secret = tmp_path / "tls.crt", tmp_path / "tls.key"
    shown.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return shown, secret


@pytest.mark.parametrize("through_proxy", [False, True])
@pytest.mark.parametrize("server_name", ["inner.name", "", "wrong.name"])
def test_the_name_of_the_certificate_is_checked(
    certificate: tuple[Path, Path], server_name: str, through_proxy: bool
) -> None:
    shown, secret = certificate
    inner = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inner.load_cert_chain(shown, secret)
    Handler.answers, Handler.asked, Tunnels.wanted = [a_list("a")], [], []
    with serving(Handler, inner) as port, serving(Tunnels) as proxy:
        Tunnels.destination = port
        access = Access(
            f"https://127.0.0.1:{port}",
            tls=ssl.create_default_context(cafile=str(shown)),
            tls_server_name=server_name,
            proxy=f"http://127.0.0.1:{proxy}" if through_proxy else "",
        )
        api = Api(lambda: access, 3.0)
        if server_name == "inner.name":
            assert len(api.list(VCJOBS)) == 1
        else:
            with pytest.raises(Problem, match="shows a certificate that cannot be trusted"):
                api.list(VCJOBS)
        api.close()
    assert Tunnels.wanted == ([f"127.0.0.1:{port}"] if through_proxy else [])


def test_a_proxy_hears_the_user_and_the_password_of_its_address(certificate: tuple[Path, Path]) -> None:
    shown, secret = certificate
    inner = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inner.load_cert_chain(shown, secret)
    Handler.answers, Handler.asked, Tunnels.users = [a_list("a")], [], []
    tls = ssl.create_default_context(cafile=str(shown))
    with serving(Handler, inner) as port, serving(Tunnels) as proxy:
        Tunnels.destination = port
        access = Access(f"https://127.0.0.1:{port}", "", tls, "inner.name", f"http://me:p%40ss@127.0.0.1:{proxy}")
        api = Api(lambda: access, 3.0)
        assert len(api.list(VCJOBS)) == 1
        api.close()
    assert Tunnels.users == [f"Basic {base64.b64encode(b'me:p@ss').decode()}"]


@pytest.mark.parametrize("proxy", ["http://me:secret@proxy:x", "socks5://me:secret@proxy", "https://me:secret@proxy"])
def test_a_proxy_that_cannot_be_used_is_a_problem_without_its_password(proxy: str) -> None:
    access = Access("https://api", "", ssl.create_default_context(), "", proxy)
    with pytest.raises(Problem, match=r"^proxy .*//proxy.* cannot be used") as caught:
        Api(lambda: access, 3.0).get(VCJOBS, "a", "ns")
    assert "secret" not in str(caught.value)


def test_requests_may_be_sent_during_a_watch(api: Api) -> None:
    def change(version: str) -> bytes:
        return json.dumps({"type": "ADDED", "object": {"metadata": {"resourceVersion": version}}}).encode() + b"\n"

    Handler.answers = [(200, change("8") + change("9")), a_list("a"), (200, change("10"))]
    api.version = "7"
    seen = api.watch(VCJOBS, "ns")

    assert next(seen)[0] == "ADDED"
    assert len(api.list(PODS)) == 1
    assert [next(seen)[0], next(seen)[0]] == ["ADDED", "ADDED"]
    assert [query.get("resourceVersion") for _, query, _ in Handler.asked] == [["7"], None, ["9"]]
    seen.close()  # type: ignore[attr-defined]
