"""Plugins of other people: what is found in a folder and in packages, and what is said of the rest."""

import os
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from volcano_py.scheduler import third_party
from volcano_py.scheduler.third_party import PluginFolder, load_plugins

SMALLEST = """
import numpy as np
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import Plugin

class {name}(Plugin, NodeOrder):
    name = "{key}"

    def node_order(self, task, nodes):
        return np.zeros(len(nodes))
"""


def plugin(name: str = "Smallest", key: str = "smallest") -> str:
    return SMALLEST.format(name=name, key=key)


@pytest.fixture
def folder(tmp_path: Path) -> PluginFolder:
    return PluginFolder(tmp_path)


def test_plugins_are_loaded_from_every_file_of_a_folder(folder, tmp_path):
    (tmp_path / "a.py").write_text(plugin())
    (tmp_path / "b.py").write_text(plugin("Largest", "largest"))
    for name in ("_notes.py", "test_a.py", "conftest.py"):
        (tmp_path / name).write_text("raise RuntimeError('not a plugin')")

    found = load_plugins(folder)

    assert sorted(found.plugins) == ["largest", "smallest"]
    assert found.sources["largest"] == str(tmp_path / "b.py")
    assert found.problems == []


def test_a_changed_file_is_read_anew_even_if_its_time_and_size_are_the_same(folder, tmp_path):
    file = tmp_path / "a.py"
    file.write_text(plugin().replace("zeros", "zeros"))
    os.utime(file, (1e9, 1e9))
    (before,) = load_plugins(folder).plugins.values()
    file.write_text(plugin(key="smallism"))
    os.utime(file, (1e9, 1e9))

    (after,) = load_plugins(folder).plugins.values()

    assert (before.name, after.name) == ("smallest", "smallism")


def test_a_change_is_noticed_once_the_file_stops_changing(folder, tmp_path):
    (tmp_path / "a.py").write_text(plugin())
    load_plugins(folder)
    assert not folder.changed()

    (tmp_path / "b.py").write_text(plugin("Largest", "largest"))

    assert [folder.changed(), folder.changed()] == [False, True]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("import nothing_of_that_name", "a.py:1: ModuleNotFoundError: No module named", id="import"),
        pytest.param("x = 1\ny = = 2\n", "a.py:2: SyntaxError", id="syntax"),
        pytest.param("\n\nraise SystemExit(3)", "a.py:3: SystemExit: 3", id="exit"),
        pytest.param("x = 1", "a.py: it has no subclass of", id="nothing-in-it"),
        pytest.param(plugin(key=""), 'a.py: class Smallest: it has no name: write name = "..."', id="no-name"),
        pytest.param(plugin(key="gang"), '"gang" is the name of a built-in plugin', id="built-in"),
        pytest.param(plugin().replace("def node_order", "def order"), "define node_order", id="unanswered"),
        pytest.param(
            plugin().replace(", NodeOrder)", ")"), "it answers no question: inherit an extension point", id="no-point"
        ),
        *(
            pytest.param(plugin() + f"    {line}\n", f"class Smallest: {said}", id=line)
            for line, said in {
                'depends_on = "NODE_ALONE"': "depends_on is 'NODE_ALONE': write DependsOn.NODE_ALONE or",
                'reads = ("labels",)': "reads is ('labels',): write frozenset({Field.REQUEST})",
                'reads = "labels"': "reads is 'labels': write",
                'arguments = "key"': "arguments is 'key': write",
                'refusals_stay = "no"': "refusals_stay is 'no': write True or False",
                'counts = frozenset({"preemptible"})': "counts names preemptible, which it has not",
            }.items()
        ),
    ],
)
def test_an_unusable_file_is_reported_with_its_line_and_a_remedy(folder, tmp_path, text, problem):
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "good.py").write_text(plugin("Largest", "largest"))

    found = load_plugins(folder)

    assert list(found.plugins) == ["largest"]
    assert len(found.problems) == 1
    assert problem in found.problems[0]


def test_two_plugins_of_one_name_are_an_error(folder, tmp_path):
    (tmp_path / "a.py").write_text(plugin())
    (tmp_path / "b.py").write_text(plugin("Again"))

    found = load_plugins(folder)

    assert found.sources == {"smallest": str(tmp_path / "a.py")}
    assert f'"smallest" is already the name of a plugin from {tmp_path / "a.py"}' in found.problems[0]


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        PluginFolder(tmp_path / "absent")


def test_plugins_are_loaded_from_entry_points_of_packages(monkeypatch, tmp_path):
    (tmp_path / "pkg_of_smallest.py").write_text(plugin())
    monkeypatch.syspath_prepend(str(tmp_path))
    entries = [
        EntryPoint("smallest", "pkg_of_smallest:Smallest", third_party.GROUP),
        EntryPoint("broken", "pkg_of_smallest:Absent", third_party.GROUP),
    ]
    monkeypatch.setattr(third_party, "entry_points", lambda group: entries if group == third_party.GROUP else [])

    found = load_plugins()

    assert list(found.plugins) == ["smallest"]
    (problem,) = found.problems
    assert problem.startswith("entry point broken = pkg_of_smallest:Absent: AttributeError: module")
