"""Each command with each kind of wrong input gets one sentence and exit code 255; see `wrong_input`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.vcctl import wrong_input
from tests.cli.vcctl.running import Cluster
from tests.cli.vcctl.wrong_input import ASKING, COMMANDS, Case, Kubeconfigs, judge
from volcano_py.cli.vcctl.program import start
from volcano_py.local.kubeconfig import kubeconfig


def refused(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    code = start(case.program, case.words)
    told = capsys.readouterr()
    judge(case, code, told.out, told.err)


@pytest.mark.parametrize("path", COMMANDS)
def test_wrong_flags(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [case for case in wrong_input.wrong_flags() if case.path == path]
    assert cases
    for case in cases:
        refused(case, capsys)


@pytest.mark.parametrize("path", ASKING)
def test_objects_and_files_that_do_not_exist(
    path: str, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for case in wrong_input.wrong_objects(tmp_path):
        if case.path == path:
            refused(case, capsys)


class Refusing(BaseHTTPRequestHandler):
    """An API server that refuses everything: with 401 below /unknown, else with 403."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        code = 401 if self.path.startswith("/unknown") else 403
        message = "Unauthorized" if code == 401 else 'jobs is forbidden: User "x" cannot do that'
        body = json.dumps({"kind": "Status", "code": code, "message": message}).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def kubeconfigs(tmp_path: Path) -> Iterator[Kubeconfigs]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    texts = {
        "broken": "a: [",
        "unreachable": kubeconfig("http://127.0.0.1:1"),
        "unknown": kubeconfig(f"{address}/unknown"),
        "forbidden": kubeconfig(f"{address}/forbidden"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    yield Kubeconfigs(*(tmp_path / name for name in texts))
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.mark.parametrize("path", ASKING)
def test_servers_that_do_not_help(
    path: str,
    kubeconfigs: Kubeconfigs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfigs.forbidden))
    cases = [case for case in wrong_input.wrong_servers(tmp_path, kubeconfigs) if case.path == path]
    assert len(cases) == 7
    for case in cases:
        refused(case, capsys)


def test_every_kind_of_wrong_input_meets_every_command(tmp_path: Path) -> None:
    configs = Kubeconfigs(*(tmp_path / name for name in Kubeconfigs._fields))
    cases = [
        *wrong_input.wrong_flags(),
        *wrong_input.wrong_objects(tmp_path),
        *wrong_input.wrong_servers(tmp_path, configs),
    ]
    kinds: dict[str, set[str]] = {}
    for case in cases:
        kinds.setdefault(case.path, set()).add(case.kind)
    assert kinds.keys() == COMMANDS.keys()
    for path, command in ASKING.items():
        flags = {flag.name for flag in command.flags}
        assert ("wrong name" in kinds[path]) == ("name" in flags), path
        listed = path.endswith(" list")
        assert ("wrong namespace" in kinds[path]) >= ("namespace" in flags and not listed), path
        assert ("missing file" in kinds[path]) == bool(flags & {"file", "filename"}), path
