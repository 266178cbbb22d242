"""A local system needs no cluster: it reads no kubeconfig and runs no credential plugin."""

from pathlib import Path

import pytest

from volcano_py.conf.defaults import BUILT_IN_CONF
from volcano_py.conf.loader import parse_conf
from volcano_py.local.controllers import make_controllers
from volcano_py.local.scheduler import make_scheduler
from volcano_py.scheduler import resolve

URL = "http://127.0.0.1:1"
PLUGIN = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://prod.example.com"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [MARK]}}}]
"""


@pytest.mark.parametrize("there", [False, True])
def test_the_kubeconfig_of_the_user_is_left_alone(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, mark = tmp_path / "kubeconfig", tmp_path / "mark"
    if there:
        path.write_text(PLUGIN.replace("MARK", str(mark)))
    monkeypatch.setenv("KUBECONFIG", str(path))

    scheduler = make_scheduler(URL, resolve(parse_conf(BUILT_IN_CONF, "(built-in)")))
    manager = make_controllers(URL)

    assert scheduler.client.server == URL
    assert manager is not None
    assert not mark.exists()
