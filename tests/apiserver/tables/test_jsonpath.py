"""The JSONPath of printer columns."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.apiserver.tables.jsonpath import PathError, compile_path
from volcano_py.apiserver.tables.layout import custom_layout

OBJECT = {"a": {"b.c": 1, "d": [{"n": "x", "v": 1}, {"n": "y", "v": 2, "on": True}]}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.d[0].n", ["x"]),
        ("$.a.d[-1].n", ["y"]),
        ("{.a.d[5].n}", []),
        (".a.b\\.c", [1]),
        (".a['b\\.c']", [1]),
        ('.a["b.c"]', [1]),
        (".a.d[*].v", [1, 2]),
        (".a.d[?(@.n=='y')].v", [2]),
        ('.a.d[?(@.n!="y")].v', [1]),
        (".a.d[?(@.on==true)].n", ["y"]),
        (".a.d[?(@.missing!=1)].v", [1, 2]),
        (".none.there", []),
        (".a.d.n", []),
    ],
)
def test_paths_find_what_they_name(path: str, found: list[Any]) -> None:
    assert compile_path(path)(OBJECT) == found


@pytest.mark.parametrize("path", [".a[", ".a[?(@.x)]", ".a..b[?(]"])
def test_a_path_that_cannot_be_read_says_where(path: str) -> None:
    with pytest.raises(PathError, match="cannot be read from"):
        compile_path(path)


def test_a_column_whose_path_cannot_be_read_says_so_in_every_row() -> None:
    layout = custom_layout(({"name": "Bad", "type": "string", "jsonPath": ".a["},))
    assert "cannot be read" in layout.cells({"metadata": {"name": "x"}})[1]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("string", {"a": 1}, '{"a":1}'),
        ("string", True, "true"),
        ("integer", 3.0, 3),
        ("integer", "3", None),
        ("number", 3, 3.0),
        ("boolean", "true", None),
        ("date", "nonsense", "<unknown>"),
    ],
)
def test_cells_follow_the_type_of_their_column(kind: str, value: Any, cell: Any) -> None:
    layout = custom_layout(({"name": "C", "type": kind, "jsonPath": ".v"},))
    assert layout.cells({"metadata": {"name": "x"}, "v": value})[1] == cell
