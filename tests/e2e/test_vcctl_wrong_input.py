"""Each command with each kind of wrong input on a real API server: one sentence and Volcano's exit code."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from tests.cli.vcctl import wrong_input
from tests.cli.vcctl.wrong_input import ASKING, Case, Kubeconfigs, judge
from tests.controlplane.install import Installed
from tests.e2e.control_plane import ControlPlane
from volcano_py.cli.vcctl.program import start


@pytest.fixture(scope="module")
def kubeconfigs(
    control_plane: ControlPlane, installed: Installed, tmp_path_factory: pytest.TempPathFactory
) -> Kubeconfigs:
    """Kubeconfigs of the real server that do not help."""
    folder = tmp_path_factory.mktemp("kubeconfigs")
    allowed = yaml.safe_load(control_plane.kubeconfig_for("default", "default").read_text())
    (folder / "forbidden").write_text(yaml.safe_dump(allowed))
    header, payload, signature = allowed["users"][0]["user"]["token"].split(".")
    expired = base64.urlsafe_b64encode(b'{"iss": "https://kubernetes.default.svc", "exp": 1}').decode().rstrip("=")
    assert payload != expired
    allowed["users"][0]["user"]["token"] = f"{header}.{expired}.{signature}"
    (folder / "unknown").write_text(yaml.safe_dump(allowed))
    allowed["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (folder / "unreachable").write_text(yaml.safe_dump(allowed))
    (folder / "broken").write_text("a: [")
    return Kubeconfigs(*(folder / name for name in ("broken", "unreachable", "unknown", "forbidden")))


def refused(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    code = start(case.program, case.words)
    told = capsys.readouterr()
    judge(case, code, told.out, told.err)


@pytest.mark.parametrize("path", ASKING)
def test_objects_and_files_that_do_not_exist(
    path: str,
    control_plane: ControlPlane,
    installed: Installed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    for case in wrong_input.wrong_objects(tmp_path):
        if case.path == path:
            refused(case, capsys)


@pytest.mark.parametrize("path", ASKING)
def test_servers_that_do_not_help(
    path: str,
    kubeconfigs: Kubeconfigs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfigs.forbidden))
    cases = [case for case in wrong_input.wrong_servers(tmp_path, kubeconfigs) if case.path == path]
    assert len(cases) == 7
    for case in cases:
        refused(case, capsys)
