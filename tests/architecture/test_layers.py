"""The shape of the tree, checked by a machine: layers, what the core may name, sizes, banned names."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "volcano_py"
CORE = ("model", "snapshot", "framework", "plugins", "actions", "scheduler")
NOT_IN_THE_CORE = frozenset(
    {
        *("asyncio", "aiohttp", "kubernetes_asyncio", "uvloop", "threading", "concurrent", "multiprocessing"),
        *("time", "datetime", "random", "secrets", "uuid", "os", "socket", "subprocess", "logging", "structlog"),
    }
)
"""A cycle is a pure function: no waiting, no clock, no chance, no outside world."""
BANNED_MODULE_NAMES = frozenset({"util", "utils", "common", "helpers", "base", "misc"})
MAX_LINES = 500


def core_modules() -> list[Path]:
    return sorted(path for package in CORE for path in (PACKAGE / package).rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_contracts_of_the_layers_hold() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_has_its_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    known = {name.strip(" ()").removeprefix("volcano_py.") for layer in layers for name in layer.split("|")}

    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= known


@pytest.mark.parametrize("path", core_modules(), ids=named)
def test_a_module_of_the_core_names_nothing_of_the_outside_world(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = {name.split(".")[0] for name in imported(tree)}
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    chance = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "random"]

    assert names & NOT_IN_THE_CORE == set()
    assert calls & {"open", "print", "input", "hash", "id"} == set()
    assert chance == []
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]


@pytest.mark.parametrize("path", core_modules(), ids=named)
def test_a_module_of_the_core_keeps_no_state(path: Path) -> None:
    """A dictionary, list or set at module level is a constant and says so."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            node.value, ast.Dict | ast.List | ast.Set | ast.DictComp
        ):
            annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
            assert annotation.startswith("Final") or ast.unparse(node).startswith("__all__"), ast.unparse(node)


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "reference").glob("*.py")), ids=named)
def test_a_reference_shares_nothing_with_what_it_is_compared_with(path: Path) -> None:
    compared = tuple(f"volcano_py.{package}" for package in ("framework", "plugins", "actions", "scheduler"))

    assert [name for name in imported(ast.parse(path.read_text())) if name.startswith(compared)] == []


def test_every_module_has_the_name_of_a_thing() -> None:
    assert [named(path) for path in PACKAGE.rglob("*.py") if path.stem in BANNED_MODULE_NAMES] == []


def test_no_module_grows_past_its_second_idea() -> None:
    assert {
        named(path): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > MAX_LINES
    } == {}
