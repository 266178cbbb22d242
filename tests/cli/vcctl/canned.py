"""An API server in memory for one command, and calls of commands on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TextIO

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.finding import find
from volcano_py.cli.vcctl.flags import read_flags
from volcano_py.client.access import Access
from volcano_py.client.api import Api, Obj
from volcano_py.client.problem import ApiProblem
from volcano_py.kube.resource import Resource


class Canned(Api):
    """Answers from lists: of one kind, or the same list for every other kind."""

    def __init__(self, lists: Mapping[Resource, list[Any]], others: list[Any] | None = None) -> None:
        super().__init__(lambda: Access("http://canned"))
        self._lists = lists
        self._others = others or []

    def another(self) -> Api:
        return self

    def get(self, kind: Resource, name: str, namespace: str = "") -> Obj:
        for one in self._lists.get(kind, self._others):
            if one["metadata"]["name"] == name:
                return dict(one)
        raise ApiProblem(404, "NotFound", f'{kind.label} "{name}" not found')

    def list(self, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        return list(self._lists.get(kind, self._others))

    def list_of(self, shape: Any, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        return self.list(kind, namespace, **query)

    def exists(self, kind: Resource, name: str) -> bool:
        return True


def call_of(line: str, api: Api, out: TextIO, now: datetime) -> Call:
    """Return the call of a command line."""
    words = line.split()
    program, words = (words[0], words[1:]) if words[0].startswith("v") else ("vcctl", words)
    command, rest = find(program, words)
    assert command is not None
    return Call(program, command, read_flags(command, rest), api=api, out=out, now=lambda: now)
