"""The plugin authors' guide: its plugin, its configuration, its commands and its test work as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.pages import DOCS, REPOSITORY, rows
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.contract.extension_points import POINTS
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import resolve
from volcano_py.testing import Scenario, a_job, a_node, trial

PAGE = DOCS / "plugins.md"
PLUGIN, TEST, COMPARISON = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
(CONF,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plugin of the guide, in the table."""
    module: dict[str, Any] = {}
    exec(compile(PLUGIN, "smallest.py", "exec"), module)
    monkeypatch.setitem(PLUGINS, "smallest", module["Smallest"])
    return module["Smallest"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the guide, as an author has them."""
    (tmp_path / "smallest.py").write_text(PLUGIN)
    (tmp_path / "_test_smallest.py").write_text(TEST)
    (tmp_path / "scheduler.conf").write_text(CONF)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder}{os.pathsep}{REPOSITORY}"
    # An author's test needs none of the plugins of pytest that are installed here; importing them takes a second.
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_the_plugin_prefers_the_smallest_node_that_has_room(plugin: Any):
    nodes = [a_node("large", cpu=64), a_node("middle", cpu=8), a_node("small", cpu=4)]

    result = Scenario(*nodes, a_job("train", tasks=4, cpu=2), conf=CONF).run()

    assert sorted(result.placements.values()) == ["middle", "middle", "small", "small"]


@pytest.mark.usefixtures("plugin")
def test_the_configuration_says_nothing_to_warn_about():
    policy = resolve(parse_conf(CONF, "scheduler.conf"))

    assert (policy.warnings, policy.missing) == ((), ())


def test_the_plugin_passes_its_trial(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(folder)

    assert trial.main(["--plugins-dir", "."]) == 0
    assert capsys.readouterr().out == "smallest: works (smallest.py)\n"


def test_the_scheduler_takes_the_folder(folder: Path):
    flags = ("--plugins-dir=.", "--scheduler-conf=scheduler.conf", "--kubeconfig=absent")
    ended = run(folder, "-m", "volcano_py.cli.vc_scheduler", *flags)

    assert ended.returncode == 2
    assert "unknown plugin" not in ended.stderr
    assert "check --kubeconfig" in ended.stderr


def test_the_test_passes(folder: Path):
    ended = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "_test_smallest.py")

    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


def test_the_comparison_prints_what_the_guide_says(folder: Path):
    (folder / "compare.py").write_text(COMPARISON)
    ended = run(folder, "compare.py")

    printed = ended.stdout.splitlines()
    assert len(printed) == 2, ended.stderr
    assert all(f"`{line}`" in PAGE.read_text() for line in printed)


def test_every_extension_point_is_listed_with_its_switch():
    listed = {cells[0].strip("`"): cells[2].strip("`") for cells in rows(PAGE, "The questions")}

    assert listed == {point.__name__: point.switch or "none" for point in POINTS}
