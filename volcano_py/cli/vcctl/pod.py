"""`vcctl pod list`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.lists import Listing, print_list
from volcano_py.cli.vcctl.printing import Table, spaced
from volcano_py.client import pods
from volcano_py.client.ages import age
from volcano_py.kube.resource import PODS

_GAP: Final = 8
_SPARE: Final = ("Task", "Job", "Restart", "Age", "IP")
"""Columns that a narrow terminal does not show, the least important first."""


def list_pods(call: Call) -> int:
    """List pods."""
    job, queue = call.flags.text("job"), call.flags.text("queue")
    labels = f"{keys.JOB_NAME}={job}" if job else "" if queue else keys.JOB_NAME
    both = ",".join(one for one in (labels, call.flags.text("selector")) if one)
    return print_list(
        call,
        Listing(
            PODS, lambda found: _table(call, found), call.namespace, both, lambda all_: pods.selected(all_, job, queue)
        ),
    )


def _table(call: Call, found: Sequence[Mapping[str, Any]]) -> Table:
    headers = ["Name", "Ready", "Status", "Restart", "Age"]
    rows = [_row(call, pod) for pod in found]
    if not call.namespace:
        headers = ["Namespace", *headers]
        rows = [[str(pod["metadata"].get("namespace", "")), *row] for pod, row in zip(found, rows, strict=True)]
    if call.flags.text("output") == "wide":
        headers = [*headers, "IP", "Node", "Job", "Task"]
        rows = [[*row, *_more(pod)] for pod, row in zip(found, rows, strict=True)]
    return spaced(headers, rows, _GAP, with_headers=False, spare=_SPARE)


def _row(call: Call, pod: Mapping[str, Any]) -> list[str]:
    metadata = pod["metadata"]
    when = age(metadata.get("creationTimestamp"), call.now())
    return [metadata["name"], pods.ready(pod), pods.state(pod), str(pods.restarts(pod)), when]


def _more(pod: Mapping[str, Any]) -> list[str]:
    labels, annotations = pod["metadata"].get("labels") or {}, pod["metadata"].get("annotations") or {}
    shown = (
        (pod.get("status") or {}).get("podIP"),
        (pod.get("spec") or {}).get("nodeName"),
        labels.get(keys.JOB_NAME),
        annotations.get(keys.TASK_SPEC) or labels.get(keys.TASK_SPEC),
    )
    return [str(one or "<none>") for one in shown]
