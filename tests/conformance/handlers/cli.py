"""Area cli: durations, tables and refusals of the command line; the commands themselves run, on canned answers."""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import NOW, Case
from volcano_py.cli.vcctl import flow, job_reading, pod, queue
from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.commands import VCCTL
from volcano_py.cli.vcctl.flags import Values
from volcano_py.client.access import Access
from volcano_py.client.ages import human_duration
from volcano_py.client.api import Api, Obj
from volcano_py.client.problem import Problem
from volcano_py.client.queues import Counts
from volcano_py.kube.resource import Resource

_NAMES: Final = {"allNamespaces": "all-namespaces"}


class Canned(Api):
    """An API server that gives the same answer to every request."""

    def __init__(self, answer: Obj) -> None:
        super().__init__(lambda: Access("http://canned"))
        self._answer = answer

    def get(self, kind: Resource, name: str, namespace: str = "") -> Obj:
        return self._answer

    def list(self, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        return list(self._answer.get("items") or ())

    def create(self, kind: Resource, obj: Obj, namespace: str = "") -> Obj:
        return obj

    def patch(self, kind: Resource, name: str, change: Obj, namespace: str = "") -> Obj:
        return self._answer


def _outcome(run: Callable[[Call], int], path: str, case: Case, answer: Obj) -> Outcome:
    command = next(one for one in VCCTL if " ".join(one.path[1:]) == path)
    flags = {_NAMES.get(name, name): _text(value) for name, value in (case.input.get("flags") or {}).items()}
    assert flags.keys() <= {flag.name for flag in command.flags}, "the row has flags that the command does not know"
    out = io.StringIO()
    call = Call("vcctl", command, Values(flags, command), api=Canned(answer), out=out, now=lambda: NOW)
    try:
        run(call)
    except Problem as problem:
        return {"output": out.getvalue(), "error": str(problem)}
    return {"output": out.getvalue(), "error": None}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _printed(expected: str, actual: str, _: Mapping[str, Any]) -> None:
    """Assert equal outputs; rows have them trimmed at both ends, unless they end with a line."""
    assert actual.strip() == expected.strip()
    if expected.endswith("\n"):
        assert actual == expected


def _command(run: Callable[[Call], int], path: str) -> Operation:
    return Operation(
        lambda case: _outcome(run, path, case, case.input["response"]),
        {"output": _printed, "error": same},
        frozenset({"response", "flags"}),
    )


def _operate(case: Case) -> Outcome:
    name = (case.input.get("flags") or {}).get("name", "")
    return _outcome(queue.operate_queue, "queue operate", case, {"metadata": {"name": name, "uid": "canned"}})


def _queues(case: Case) -> Outcome:
    counted = {name: Counts(**numbers) for name, numbers in case.input["statistics"].items()}
    return {"output": queue.queue_table(case.input["queues"]["items"], counted).text()}


AREAS: Final = {
    "cli/durations": {
        "humanDuration": Operation(
            lambda case: {"text": human_duration(case.input["seconds"])}, {"text": same}, frozenset({"seconds"})
        )
    },
    "cli/job": {"list": _command(job_reading.list_jobs, "job list")},
    "cli/jobflow": {
        "list": _command(flow.list_jobflow, "jobflow list"),
        "get": _command(flow.get_jobflow, "jobflow get"),
        "describe": _command(flow.describe_jobflow, "jobflow describe"),
    },
    "cli/jobtemplate": {
        "list": _command(flow.list_jobtemplate, "jobtemplate list"),
        "get": _command(flow.get_jobtemplate, "jobtemplate get"),
        "describe": _command(flow.describe_jobtemplate, "jobtemplate describe"),
    },
    "cli/pod": {"list": _command(pod.list_pods, "pod list")},
    "cli/queue": {
        "list": Operation(_queues, {"output": _printed}, frozenset({"queues", "statistics"})),
        "operate": Operation(_operate, {"error": same}, frozenset({"flags"})),
    },
}
