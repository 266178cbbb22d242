"""`vc-scheduler --check`: what it prints and how it ends."""

from pathlib import Path

import pytest

from tests.daemon.cluster import CONF
from volcano_py.cli.vc_scheduler import main

PLUGIN = """
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import Plugin

class Mine(Plugin, NodeOrder):
    name = "mine"

    def node_order(self, task, nodes):
        return {answer}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.conf"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir()
    return folder


def test_a_good_configuration_ends_with_0(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(CONF)

    assert main(["--check", f"--scheduler-conf={path}"]) == 0
    assert capsys.readouterr().out == f"{path}: can be used; actions: enqueue, allocate\n"


def test_warnings_end_with_1_and_have_file_and_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("teirs: []\nactions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {weight: 1}\n")

    assert main(["--check", f"--scheduler-conf={path}"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"warning: {path}:1: unknown key teirs is ignored; did you mean tiers?",
        f'warning: {path}:6: plugin binpack has no argument "weight": it is ignored; did you mean binpack.weight?',
        f"{path}: can be used, with 2 warnings; actions: allocate",
    ]


def test_a_refused_configuration_ends_with_2_after_its_warnings(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("teirs: []\nactions: allocate\ntiers:\n- plugins:\n  - name: gnag\n")

    assert main(["--check", f"--scheduler-conf={path}"]) == 2
    warning, error = capsys.readouterr().out.splitlines()
    assert warning.startswith(f"warning: {path}:1: unknown key teirs")
    assert error.startswith(f'error: {path}:5: unknown plugin "gnag"; did you mean gang?')


def test_a_file_that_is_missing_ends_with_2(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", f"--scheduler-conf={path}"]) == 2
    assert capsys.readouterr().out.startswith(f"error: {path}: cannot be read")


def test_a_folder_that_is_missing_ends_with_2(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(CONF)

    assert main(["--check", f"--scheduler-conf={path}", f"--plugins-dir={path}"]) == 2
    assert capsys.readouterr().out == f"error: {path} is not a folder, so it has no plugins\n"


def test_without_a_file_the_built_in_configuration_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert capsys.readouterr().out.startswith("(built-in configuration): can be used; actions: enqueue")


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        pytest.param("nodes.idle[0]", 0, "can be used; actions", id="works"),
        pytest.param("1 / 0", 2, "plugin mine failed in node_order: ZeroDivisionError", id="fails"),
    ],
)
def test_plugins_have_their_trial(
    path: Path, folder: Path, capsys: pytest.CaptureFixture[str], answer: str, code: int, said: str
) -> None:
    path.write_text(f"{CONF}  - name: mine\n")
    (folder / "mine.py").write_text(PLUGIN.format(answer=answer))

    assert main(["--check", f"--scheduler-conf={path}", f"--plugins-dir={folder}"]) == code
    assert said in capsys.readouterr().out


def test_a_plugin_that_cannot_be_loaded_and_is_not_named_is_a_warning(
    path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(f"{CONF}  - name: mine\n")
    (folder / "mine.py").write_text(PLUGIN.format(answer="nodes.idle[0]"))
    (folder / "other.py").write_text("nonsense\n")

    assert main(["--check", f"--scheduler-conf={path}", f"--plugins-dir={folder}"]) == 1
    assert capsys.readouterr().out.startswith(f"warning: {folder / 'other.py'}:1: NameError")
