"""Lists of objects: the table, the other formats, and changes as they happen."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.printing import NOTHING, Row, Table, as_json, as_yaml, cleaned, show
from volcano_py.client.problem import ApiProblem
from volcano_py.kube.resource import NAMESPACES, Resource

if TYPE_CHECKING:
    from volcano_py.client.following import Change

Obj = Mapping[str, Any]
_NONE: Final = Table(("",), (0,), ())
"""Stands in for the table when none is printed."""


class Joined(Protocol):
    """Objects of another kind that a table counts; they change while the listed ones stay as they are."""

    kind: Resource
    version: str

    def take(self, change: "Change") -> None:
        """Count what has changed."""


class Listing(NamedTuple):
    """What a command lists, and how."""

    kind: Resource
    table: Callable[[Sequence[Obj]], Table]
    namespace: str = ""
    labels: str = ""
    chosen: Callable[[Sequence[Obj]], Sequence[Obj]] = list
    """Filters that the API server does not know."""
    fields: str = ""
    joined: Joined | None = None


def print_list(call: Call, listing: Listing) -> int:
    """Print what is there and, with --watch, what changes."""
    query = {"labelSelector": listing.labels, "fieldSelector": listing.fields}
    query = {name: value for name, value in query.items() if value}
    with call.about(listing.kind):
        found = list(listing.chosen(call.api.list(listing.kind, listing.namespace, **query)))
        version = call.api.version
    watched = call.flags.on("watch")
    form = call.flags.text("output")
    if not found:
        look_for_namespace(call, listing.kind, listing.namespace)
    plain = form in ("name", "json", "yaml")
    table = _NONE if plain else listing.table(found)
    if form in ("json", "yaml") and not watched:
        items = [cleaned(obj) for obj in found]
        document = {"kind": "List", "apiVersion": "v1", "items": items}
        call.write(as_json(document) if form == "json" else as_yaml(document))
    elif plain:
        for obj in found:
            print_object(call, listing.kind, obj, listing.table)
    elif found or watched:
        show(call, table)
    else:
        call.line(NOTHING)
    if watched:
        call.flush()
        call.api.version = version
        if listing.joined is None or plain:
            _watch(call, listing, query, table)
        else:
            _watch_both(call, listing, listing.joined, query, table, found)
    return 0


def print_object(call: Call, kind: Resource, obj: Obj, table: Callable[[Sequence[Obj]], Table]) -> None:
    """Print one object in the wanted format; without one, as a table of one row."""
    form = call.flags.text("output")
    if form == "name":
        call.line(
            f"{kind.kind.lower()}.{kind.group}/{_name(obj)}" if kind.group else f"{kind.kind.lower()}/{_name(obj)}"
        )
    elif form == "json":
        call.write(as_json(cleaned(obj, kind.api_version, kind.kind)))
    elif form == "yaml":
        call.write(("---\n" if call.flags.on("watch") else "") + as_yaml(cleaned(obj, kind.api_version, kind.kind)))
    else:
        show(call, table([obj]))


def _name(obj: Obj) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def _watch(call: Call, listing: Listing, query: Mapping[str, str], table: Table) -> None:
    with call.about(listing.kind):
        while True:
            try:
                for _, obj in call.api.watch(listing.kind, listing.namespace, **query):
                    _print_change(call, listing, table, obj)
            except ApiProblem as problem:
                if problem.status != 410:
                    raise
                # The server does not remember what happened since: show what is there now, and go on from there.
                for obj in call.api.list(listing.kind, listing.namespace, **query):
                    _print_change(call, listing, table, obj)


def _print_change(call: Call, listing: Listing, table: Table, obj: Obj) -> None:
    if not listing.chosen([obj]):
        return
    if call.flags.text("output") in ("name", "json", "yaml"):
        print_object(call, listing.kind, obj, listing.table)
    else:
        _print_rows(call, table, listing.table([obj]).rows)
    call.flush()


def _print_rows(call: Call, table: Table, rows: Sequence[Row]) -> None:
    """Print rows below a table; if columns must move for them on a terminal, the headers come again."""
    before = table.header()
    if call.on_terminal:
        table.fit(call.width)
    table.grow(rows)
    if call.on_terminal and table.header() != before:
        call.write(table.header())
    for row in rows:
        call.write(table.line(row, coloured=call.coloured))


def _watch_both(
    call: Call, listing: Listing, joined: Joined, query: Mapping[str, str], table: Table, found: Sequence[Obj]
) -> None:
    """Print the rows that change, whether the listed objects have changed or those that the table counts."""
    from volcano_py.client.following import Source, follow

    objects = {_name(obj): obj for obj in found}
    printed = {_name(obj): row for obj, row in zip(found, table.rows, strict=True)}
    sources = [Source(listing.kind, call.api.version, query), Source(joined.kind, joined.version, {})]
    with call.about(listing.kind):
        for changes in follow(call.api, sources):
            for change in changes:
                if change.kind == joined.kind:
                    joined.take(change)
                else:
                    _take(objects, change)
            rows = dict(zip(objects, listing.table(list(objects.values())).rows, strict=True))
            gone = [row for name, row in printed.items() if name not in rows]
            _print_rows(call, table, [*gone, *(row for name, row in rows.items() if printed.get(name) != row)])
            call.flush()
            printed = rows


def _take(objects: dict[str, Obj], change: "Change") -> None:
    from volcano_py.client.following import LISTED

    if change.what == LISTED:
        objects.clear()
    for obj in change.objects:
        objects[_name(obj)] = obj
        if change.what == "DELETED":
            del objects[_name(obj)]


def look_for_namespace(call: Call, kind: Resource, space: str) -> None:
    """Warn if nothing was found because the namespace does not exist; that is no failure, as for kubectl."""
    if space and kind.namespaced and not call.api.exists(NAMESPACES, space):
        call.warn(f'namespace {space} does not exist; "kubectl get namespaces" lists those that do')
