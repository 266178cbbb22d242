"""Modules import in no circle, type-only imports included; no class has more members than anybody can know."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "volcano_py"
MOST_PUBLIC_MEMBERS = 30


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield every module that another one names, wherever in it: under TYPE_CHECKING and inside functions, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else str(node.module)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that reach one another (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1 or name in graph.get(name, ()):
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]
    assert circles({"a": {"a"}}) == [["a"]]


def test_no_module_is_imported_by_what_it_imports() -> None:
    graph = {name: {other for other in imports_of(tree) if other in MODULES} for name, tree in MODULES.items()}

    assert circles(graph) == []


def public_members(cls: ast.ClassDef) -> set[str]:
    """Return the names that others may use: methods, class attributes, and whatever is assigned to self."""
    names: set[str] = set()
    for node in cls.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    for node in ast.walk(cls):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {
            target.attr
            for target in targets
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
        }
    return {name for name in names if not name.startswith("_")}


def is_enumeration(cls: ast.ClassDef) -> bool:
    return any("Enum" in ast.unparse(base) or "Flag" in ast.unparse(base) for base in cls.bases)


def test_no_class_has_more_public_members_than_anybody_can_know() -> None:
    found = {
        f"{module}.{node.name}": len(members)
        for module, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and not is_enumeration(node)
        and len(members := public_members(node)) > MOST_PUBLIC_MEMBERS
    }

    assert found == {}
