"""How the processes are put together: small steps, few collaborators, built in order, nothing copied between them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "volcano_py"
ROOMS = ("process", "daemon", "controllers", "effects", "writing")
"""Where processes are put together, and what they are made of."""
LONGEST_INIT = 55
LONGEST_FUNCTION = 40  # in these rooms
MOST_COLLABORATORS = 9
ONLY_PROCESS_NAMES = frozenset({"OperatorServer", "SyncTimeout", "Leadership", "LeaderElector", "LeaderMetrics"})
"""What start, probes, lease and end are made of."""
MAY_NAME_THEM = ("process", "kube", "runtime", "metrics")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(*rooms: str) -> list[Path]:
    return sorted(path for room in rooms for path in (PACKAGE / room).rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def classes(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in nodes(path) if isinstance(node, ast.ClassDef))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in nodes(path) if isinstance(node, Function))


def inits(paths: list[Path]) -> Iterator[tuple[str, Function]]:
    for path in paths:
        for one in classes(path):
            for function in one.body:
                if isinstance(function, Function) and function.name == "__init__":
                    yield f"{named(path)}: {one.name}", function


def lines_of_code(function: Function) -> int:
    """Count the lines of a body, without its docstrings."""
    texts = (one for one in ast.walk(function) if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    documentation = {line for one in texts for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    body = range(function.body[0].lineno, (function.end_lineno or 0) + 1)
    return len(set(body) - documentation)


def parameters(function: Function) -> int:
    taken = function.args
    return len(taken.posonlyargs) + len(taken.args) + len(taken.kwonlyargs) - 1  # self is none


def attributes_of_self(node: ast.AST) -> Iterator[ast.Attribute]:
    for found in ast.walk(node):
        if isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name) and found.value.id == "self":
            yield found


def used_before_built(one: ast.ClassDef) -> set[str]:
    """Return what the lambdas of a class take from ``self`` although a later line sets it."""
    built: dict[str, int] = {}
    for attribute in attributes_of_self(one):
        if isinstance(attribute.ctx, ast.Store):
            built[attribute.attr] = min(attribute.lineno, built.get(attribute.attr, attribute.lineno))
    return {
        attribute.attr
        for node in ast.walk(one)
        if isinstance(node, ast.Lambda)
        for attribute in attributes_of_self(node)
        if built.get(attribute.attr, 0) >= node.lineno
    }


def test_no_constructor_is_long() -> None:
    found = {name: lines for name, init in inits(modules(".")) if (lines := lines_of_code(init)) > LONGEST_INIT}

    assert found == {}


@pytest.mark.parametrize("room", ROOMS)
def test_no_function_of_a_process_is_long(room: str) -> None:
    found = {
        f"{named(path)}: {function.name}": lines
        for path in modules(room)
        for function in functions(path)
        if (lines := lines_of_code(function)) > LONGEST_FUNCTION
    }

    assert found == {}


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_has_a_dozen_collaborators(room: str) -> None:
    found = {name: count for name, init in inits(modules(room)) if (count := parameters(init)) > MOST_COLLABORATORS}

    assert found == {}


def test_no_lambda_refers_to_what_is_built_later() -> None:
    found = {
        f"{named(path)}: {one.name}": sorted(late)
        for path in modules(".")
        for one in classes(path)
        if (late := used_before_built(one))
    }

    assert found == {}


def test_start_probes_lease_and_end_stand_in_one_place() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {*MAY_NAME_THEM, "__pycache__"}
    found = {
        named(path): sorted(names)
        for path in modules(*sorted(rooms))
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (names := ONLY_PROCESS_NAMES & {alias.name for alias in node.names})
    }

    assert found == {}
