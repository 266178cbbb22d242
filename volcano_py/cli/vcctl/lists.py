"""Lists of objects: the table, the other formats, and changes as they happen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.printing import NOTHING, Table, as_json, as_yaml, cleaned, show
from volcano_py.client.problem import ApiProblem, Problem
from volcano_py.kube.resource import NAMESPACES, Resource

Obj = Mapping[str, Any]


class Listing(NamedTuple):
    """What a command lists, and how."""

    kind: Resource
    table: Callable[[Sequence[Obj]], Table]
    namespace: str = ""
    labels: str = ""
    chosen: Callable[[Sequence[Obj]], Sequence[Obj]] = list
    """Filters that the API server does not know."""
    fields: str = ""


def print_list(call: Call, listing: Listing) -> int:
    """Print what is there and, with --watch, what changes."""
    query = {"labelSelector": listing.labels, "fieldSelector": listing.fields}
    query = {name: value for name, value in query.items() if value}
    with call.about(listing.kind):
        found = list(listing.chosen(call.api.list(listing.kind, listing.namespace, **query)))
        version = call.api.version
    watched = call.flags.on("watch")
    form = call.flags.text("output")
    if not found and not watched:
        _namespace_exists(call, listing)
    table = listing.table(found)
    if form in ("json", "yaml") and not watched:
        items = [cleaned(obj) for obj in found]
        document = {"kind": "List", "apiVersion": "v1", "items": items}
        call.write(as_json(document) if form == "json" else as_yaml(document))
    elif form in ("name", "json", "yaml"):
        for obj in found:
            print_object(call, listing.kind, obj, listing.table)
    elif found or watched:
        show(call, table)
    else:
        call.line(NOTHING)
    if watched:
        call.api.version = version
        _watch(call, listing, query, table)
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
    call.flush()
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
        for row in listing.table([obj]).rows:
            call.write(table.line(row, coloured=call.coloured))
    call.flush()


def _namespace_exists(call: Call, listing: Listing) -> None:
    """Raise Problem if nothing was found because the namespace does not exist."""
    space = listing.namespace
    if space and listing.kind.namespaced and not call.api.exists(NAMESPACES, space):
        raise Problem(f'namespace {space} does not exist; "kubectl get namespaces" lists those that do')
