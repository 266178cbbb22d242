"""The glossary and the page on the architecture: what they name in the code exists."""

import importlib
import re
from typing import Any

import pytest

from tests.packaging.pages import DOCS, REPOSITORY, rows

GLOSSARY = DOCS / "glossary.md"
SECTIONS = re.findall(r"^## (.*)$", GLOSSARY.read_text(), re.MULTILINE)
ARCHITECTURE = DOCS / "architecture.md"
PACKAGE = REPOSITORY / "volcano_py"
RESERVED = {"admission/"}  # a layer without code yet
TERMS = [cells for section in SECTIONS for cells in rows(GLOSSARY, section)]


def found(name: str) -> Any:
    """Return the module, class or attribute of a name without the leading package."""
    parts = ["volcano_py", *name.split(".")]
    for length in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(f"there is no {name}")


@pytest.mark.parametrize("term", TERMS, ids=lambda cells: cells[0])
def test_what_a_term_is_in_python_exists(term: list[str]):
    for name in re.findall(r"`([^`]+)`", term[3]):
        found(name)


def test_a_term_is_explained_once_and_in_one_sentence():
    assert len({cells[0] for cells in TERMS}) == len(TERMS)
    assert [cells[0] for cells in TERMS if not cells[1].endswith(".")] == []


def test_the_files_and_folders_of_the_architecture_exist():
    named = set(re.findall(r"`([\w./<>-]+(?:/|\.py))`", ARCHITECTURE.read_text())) - RESERVED
    plain = {name for name in named if "<" not in name}

    assert len(plain) > 40
    assert [name for name in sorted(plain) if not ((PACKAGE / name).exists() or (REPOSITORY / name).exists())] == []


def test_every_folder_of_the_package_has_its_line_in_the_tree():
    listed = {cells[0].strip("`/") for cells in rows(ARCHITECTURE, "The tree")}
    folders = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}

    assert folders <= listed


def test_the_layers_are_those_that_are_checked():
    project = (REPOSITORY / "pyproject.toml").read_text()
    section = project.partition('name = "imports point down, never sideways"')[2].partition("]")[0]
    checked = [set(re.findall(r"volcano_py\.(\w+)", line)) for line in section.splitlines() if "volcano_py." in line]
    block = ARCHITECTURE.read_text().partition("## Layers")[2]
    drawn = [set(re.findall(r"\w+", line)) for line in block.splitlines() if line.startswith("    ")]

    assert drawn == checked
