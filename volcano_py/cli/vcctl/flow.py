"""`vcctl jobflow` and `vcctl jobtemplate`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.lists import Listing, look_for_namespace, print_list, print_object
from volcano_py.cli.vcctl.printing import Table, as_json, as_yaml, cleaned, spaced
from volcano_py.client.ages import age
from volcano_py.client.documents import read_documents
from volcano_py.client.problem import Problem
from volcano_py.kube.resource import JOB_FLOWS, JOB_TEMPLATES, Resource

_GAP: Final = 4
_LINE: Final = "---------------------------------"


def _list(kind: Resource, call: Call) -> int:
    return print_list(call, Listing(kind, _table(kind, call), call.namespace, call.flags.text("selector")))


def _get(kind: Resource, call: Call) -> int:
    print_object(call, kind, _named(kind, call), _table(kind, call))
    return 0


def _describe(kind: Resource, call: Call) -> int:
    if call.flags.text("name"):
        found = [_named(kind, call)]
    else:
        with call.about(kind):
            found = call.api.list(kind, call.namespace)
        if not found:
            look_for_namespace(call, kind, call.namespace)
    form = as_json if call.flags.text("format") == "json" else as_yaml
    texts = [form(cleaned(one, kind.api_version, kind.kind)) for one in found]
    call.write(f"{_LINE}\n".join(texts) or "No resources found\n")
    return 0


def _create(kind: Resource, call: Call) -> int:
    def create(namespace: str, obj: dict[str, Any]) -> None:
        call.api.create(kind, obj, namespace)

    return _each(kind, call, "create", create)


def _delete(kind: Resource, call: Call) -> int:
    if call.flags.text("file"):
        return _each(kind, call, "delete", lambda space, obj: call.api.delete(kind, obj["metadata"]["name"], space))
    found = _named(kind, call)
    name, namespace = found["metadata"]["name"], call.flags.text("namespace")
    with call.about(kind, name, _list_command(kind, namespace)):
        call.api.delete(kind, name, namespace)
    call.line(f"Deleted {kind.kind}: {namespace}/{name}")
    return 0


def _each(kind: Resource, call: Call, verb: str, act: Callable[[str, dict[str, Any]], None]) -> int:
    """Do something with every object of a file; what fails does not stop the others."""
    failed = []
    for obj in read_documents(call.flags.text("file"), kind):
        name, namespace = obj["metadata"]["name"], obj["metadata"].setdefault("namespace", "default")
        try:
            with call.about(kind, name, _list_command(kind, namespace), namespace):
                act(namespace, obj)
        except Problem as problem:
            failed.append(f"{verb} {kind.kind} {namespace}/{name}: {problem}")
        else:
            call.line(f"{verb.capitalize()}d {kind.kind}: {namespace}/{name}")
    if failed:
        raise Problem(failed[0] if len(failed) == 1 else f"[{', '.join(failed)}]")
    return 0


def _named(kind: Resource, call: Call) -> dict[str, Any]:
    name, namespace = call.flags.text("name"), call.flags.text("namespace")
    if not name:
        raise Problem(f"{kind.kind.lower()} name must be specified")
    with call.about(kind, name, _list_command(kind, namespace)):
        return call.api.get(kind, name, namespace)


def _list_command(kind: Resource, namespace: str) -> str:
    return f"vcctl {kind.kind.lower()} list -n {namespace}"


def _table(kind: Resource, call: Call) -> Callable[[Sequence[Mapping[str, Any]]], Table]:
    def table(found: Sequence[Mapping[str, Any]]) -> Table:
        headers = ["Name", "Namespace"]
        rows = [[one["metadata"]["name"], str(one["metadata"].get("namespace", ""))] for one in found]
        if kind is JOB_FLOWS or call.flags.text("output") == "wide":
            now = call.now()
            ages = [age(one["metadata"].get("creationTimestamp"), now) for one in found]
            phases = [str(((one.get("status") or {}).get("state") or {}).get("phase") or "") for one in found]
            more = list(zip(phases, ages, strict=True)) if kind is JOB_FLOWS else [(one,) for one in ages]
            headers = [*headers, *(["Phase", "Age"] if kind is JOB_FLOWS else ["Age"])]
            rows = [[*row, *cells] for row, cells in zip(rows, more, strict=True)]
        return spaced(headers, rows, _GAP)

    return table


# The commands, under the names of the table.
list_jobflow, list_jobtemplate = partial(_list, JOB_FLOWS), partial(_list, JOB_TEMPLATES)
get_jobflow, get_jobtemplate = partial(_get, JOB_FLOWS), partial(_get, JOB_TEMPLATES)
describe_jobflow, describe_jobtemplate = partial(_describe, JOB_FLOWS), partial(_describe, JOB_TEMPLATES)
create_jobflow, create_jobtemplate = partial(_create, JOB_FLOWS), partial(_create, JOB_TEMPLATES)
delete_jobflow, delete_jobtemplate = partial(_delete, JOB_FLOWS), partial(_delete, JOB_TEMPLATES)
