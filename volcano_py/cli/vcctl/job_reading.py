"""`vcctl job list`, `vcctl job view` and `vjobs`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.lists import Listing, print_list, print_object
from volcano_py.cli.vcctl.printing import Table
from volcano_py.cli.vcctl.texts import columns, one_line, padded, wrapped
from volcano_py.client.ages import age, day
from volcano_py.client.api import Obj
from volcano_py.client.problem import Problem
from volcano_py.client.sizes import minimum_of, replicas_of
from volcano_py.kube.resource import EVENTS, VCJOBS

_COLUMNS: Final = (
    *(("Creation", 15), ("Phase", 12), ("JobType", 12), ("Replicas", 12), ("Min", 6), ("Pending", 10)),
    *(("Running", 10), ("Succeeded", 12), ("Failed", 10), ("Unknown", 12), ("RetryCount", 10)),
)
_SPARE: Final = ("JobType", "Unknown", "RetryCount", "Creation", "Min", "Priority", "Succeeded", "Pending")
"""Columns that a narrow terminal does not show, the least important first."""
_GAP: Final = 3
_JOB_TYPE: Final = "volcano.sh/job-type"
_EVENT_GAP: Final = 2
_MESSAGE: Final = 40
"""A message gets at least this much room on a terminal."""
_LABEL_SIGNS: Final = "=!(, "
_FORBIDDEN: Final = 403


def list_jobs(call: Call) -> int:
    """List jobs."""
    return print_list(call, _listing(call))


def jobs_or_job(call: Call) -> int:
    """List jobs, or show the named one."""
    if not call.flags.text("name"):
        return list_jobs(call)
    return _view(call, conditions=False)


def view_job(call: Call) -> int:
    """Show one job."""
    if not call.flags.text("name"):
        raise Problem("job name (specified by --name or -N) is mandatory to view a particular job")
    return _view(call, conditions=True)


def job_of(call: Call) -> Obj:
    """Return the job that the flags name."""
    name, namespace = call.flags.text("name"), call.flags.text("namespace")
    with call.about(VCJOBS, name, f"vcctl job list -n {namespace}"):
        return call.api.get(VCJOBS, name, namespace)


def _listing(call: Call) -> Listing:
    flags = call.flags
    selector, queue, scheduler = flags.text("selector"), flags.text("queue"), flags.text("scheduler")
    by_labels = any(sign in selector for sign in _LABEL_SIGNS)  # no name of a job has these
    part = "" if by_labels else selector

    def chosen(jobs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [
            job
            for job in jobs
            if (not queue or _spec(job).get("queue") == queue)
            and (not scheduler or _spec(job).get("schedulerName") == scheduler)
            and part in job["metadata"]["name"]
        ]

    wide = flags.text("output") == "wide"
    return Listing(
        VCJOBS,
        lambda jobs: _table(jobs, call, everywhere=not call.namespace, wide=wide),
        call.namespace,
        selector if by_labels else "",
        chosen,
    )


def _table(jobs: Sequence[Mapping[str, Any]], call: Call, *, everywhere: bool, wide: bool) -> Table:
    headers, widths = ["Name", *(name for name, _ in _COLUMNS)], [0, *(width for _, width in _COLUMNS)]
    rows = [_row(job) for job in jobs]
    widths[0] = max([len("Name"), *(columns(row[0]) for row in rows)]) + _GAP
    if everywhere:
        spaces = [str(job["metadata"].get("namespace", "")) for job in jobs]
        headers, widths = ["Namespace", *headers], [max([len("Namespace"), *map(columns, spaces)]) + _GAP, *widths]
        rows = [[space, *row] for space, row in zip(spaces, rows, strict=True)]
    if wide:
        widths[-1] += _GAP
        headers, widths = [*headers, "Queue", "Priority", "Age"], [*widths, 16, 16, 8]
        rows = [[*row, *_more(job, call)] for job, row in zip(jobs, rows, strict=True)]
    return Table(headers, widths, rows, _SPARE)


def _row(job: Mapping[str, Any]) -> list[str]:
    metadata, status = job["metadata"], job.get("status") or {}
    replicas = sum(map(replicas_of, _spec(job).get("tasks") or ()))
    numbers = (
        *(replicas, minimum_of(job)),
        *(status.get(name) for name in ("pending", "running", "succeeded", "failed", "unknown", "retryCount")),
    )
    return [
        metadata["name"],
        day(metadata.get("creationTimestamp")),
        str((status.get("state") or {}).get("phase") or ""),
        str((metadata.get("labels") or {}).get(_JOB_TYPE) or "Batch"),
        *(str(number or 0) for number in numbers),
    ]


def _more(job: Mapping[str, Any], call: Call) -> list[str]:
    spec = _spec(job)
    created = job["metadata"].get("creationTimestamp")
    queue, priority = spec.get("queue") or keys.DEFAULT_QUEUE, spec.get("priorityClassName") or "<none>"
    return [queue, priority, age(created, call.now())]


def _spec(job: Mapping[str, Any]) -> Mapping[str, Any]:
    return job.get("spec") or {}


# One job


def _view(call: Call, *, conditions: bool) -> int:
    job = job_of(call)
    if call.flags.text("output") not in ("", "wide"):
        print_object(call, VCJOBS, job, _listing(call).table)
        return 0
    for line in _about(job, conditions=conditions):
        call.line(line)
    for line in _last_lines(call, f"{job['metadata']['name']}."):
        call.line(line)
    return 0


def _last_lines(call: Call, prefix: str) -> list[str]:
    """Return the events of a job; to a user who may not read them, its lines above are worth their own."""
    try:
        with call.about(EVENTS):
            found = call.api.list(EVENTS, call.flags.text("namespace"))
    except Problem as problem:
        if getattr(problem.__cause__, "status", 0) != _FORBIDDEN:
            raise
        told = f"Events: cannot be read: {one_line(str(problem))}"
        return wrapped(told, call.width, others="  ") if call.on_terminal else [told]
    return _events(call, [one for one in found if one["metadata"]["name"].startswith(prefix)])


def _about(job: Obj, *, conditions: bool) -> list[str]:
    metadata, spec, status = job["metadata"], _spec(job), job.get("status") or {}
    lines = [
        f"Name:       \t{metadata['name']}",
        f"Namespace:  \t{metadata.get('namespace', '')}",
        f"Labels:     \t{_map(metadata.get('labels'))}",
        f"Annotations:\t{_map(metadata.get('annotations'))}",
        f"API Version:\t{VCJOBS.api_version}",
        f"Kind:       \t{VCJOBS.kind}",
        "Metadata:",
        f"  Creation Timestamp:\t{metadata.get('creationTimestamp', '')}",
        f"  Generate Name:     \t{metadata.get('generateName', '')}",
        f"  Generation:        \t{metadata.get('generation', 0)}",
        f"  Resource Version:  \t{metadata.get('resourceVersion', '')}",
        f"  Self Link:         \t{metadata.get('selfLink', '')}",
        f"  UID:               \t{metadata.get('uid', '')}",
        "Spec:",
        f"  Min Available:     \t{minimum_of(job)}",
        f"  Queue:             \t{spec.get('queue', '')}",
        "  Plugins:",
        *(
            f"    {name.capitalize()}:\t[{' '.join(given or ())}]"
            for name, given in sorted((spec.get("plugins") or {}).items())
        ),
        f"  Scheduler Name:    \t{spec.get('schedulerName', '')}",
        "  Tasks:",
        *(line for task in spec.get("tasks") or () for line in _task(task)),
        "Status:",
        *(f"  {title}:".ljust(16) + f"\t{status[name]}" for title, name in _COUNTERS if status.get(name)),
        "  State:",
        *(f"    {name.capitalize()}:\t{text}" for name, text in _state(status)),
    ]
    if controlled := status.get("controlledResources"):
        lines += ["  Controlled Resources:", *(f"    {name}: \t{value}" for name, value in sorted(controlled.items()))]
    if conditions and status.get("conditions"):
        lines += ["  Conditions:", "    Status\tTransitionTime"]
        lines += [f"    {one.get('status')} \t{one.get('lastTransitionTime', '')} " for one in status["conditions"]]
    return lines


_COUNTERS: Final = (
    *(("Succeeded", "succeeded"), ("Pending", "pending"), ("Running", "running"), ("Failed", "failed")),
    *(("Terminating", "terminating"), ("Unknown", "unknown"), ("RetryCount", "retryCount")),
    *(("Min Available", "minAvailable"), ("Version", "version")),
)


def _state(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    state = status.get("state") or {}
    more = [(name, str(state[name])) for name in ("reason", "message") if state.get(name)]
    return [("phase", str(state.get("phase") or "")), *more]


def _map(entries: Mapping[str, str] | None) -> str:
    if not entries:
        return "<none>"
    return json.dumps(entries, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _task(task: Mapping[str, Any]) -> list[str]:
    pod = (task.get("template") or {}).get("spec") or {}
    lines = [
        f"    Name:\t{task.get('name', '')}",
        f"    Replicas:\t{task.get('replicas', 0)}",
        "    Template:",
        "      Spec:",
        "        Containers:",
    ]
    for container in pod.get("containers") or ():
        resources = container.get("resources") or {}
        lines += ["          Command:", *(f"            {word}" for word in container.get("command") or ())]
        lines += [f"          Image:\t{container.get('image', '')}", f"          Name: \t{container.get('name', '')}"]
        lines += ["          Ports:"]
        for port in container.get("ports") or ():
            lines += [f"            Container Port:\t{port.get('containerPort')}"]
            lines += [f"            Name:          \t{port.get('name', '')}"]
        lines += ["          Resources:"]
        for title in ("limits", "requests"):
            lines += [f"            {title.capitalize()}:"]
            amounts = {"cpu": 0, "memory": 0, **(resources.get(title) or {})}
            lines += [f"              {f'{name.capitalize()}:'.ljust(7)}\t{amount}" for name, amount in amounts.items()]
        lines += [f"            Working Dir:\t{container.get('workingDir', '')}"]
    lines += ["        Image Pull Secrets:"]
    lines += [f"          Name:     \t{one.get('name', '')}" for one in pod.get("imagePullSecrets") or ()]
    return [*lines, f"        Restart Policy:   \t{pod.get('restartPolicy', '')}"]


def _events(call: Call, events: Sequence[Obj]) -> list[str]:
    if not events:
        return ["Events: \t<none>"]
    headers = ("Type", "Reason", "Age", "Form", "Message")
    rows = [headers, ("-------",) * len(headers), *(_event(call, one) for one in events)]
    if call.on_terminal:
        return ["Events:", *_narrow(rows, call.width)]
    return ["Events:", *("\t".join((*map(str.ljust, row[:4], (15, 40, 30, 40)), row[4])) for row in rows)]


def _narrow(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Return the events for a terminal: the message goes on below itself, and the origin goes if there is no room."""
    places = [0, 1, 2, 3]
    widths = [max(columns(row[place]) for row in rows) + _EVENT_GAP for place in places]
    for place in (3, 2, 0):
        if width - sum(widths[one] for one in places) < _MESSAGE:
            places.remove(place)
    before = sum(widths[place] for place in places)
    lines = []
    for row in rows:
        first = "".join(padded(row[place], widths[place]) for place in places)
        parts = wrapped(row[4], max(width - before, 2)) or [""]
        lines += [f"{first}{parts[0]}".rstrip(), *(" " * before + part for part in parts[1:])]
    return lines


def _event(call: Call, event: Obj) -> tuple[str, ...]:
    now, count = call.now(), int(event.get("count") or 1)
    first = event.get("firstTimestamp") or event.get("eventTime")
    when = age(first, now)
    if count > 1:
        when = f"{age(event.get('lastTimestamp') or first, now)} (x{count} over {when})"
    source = event.get("source") or {}
    origin = [str(source.get(name)) for name in ("component", "host") if source.get(name)]
    origin = origin or [str(event.get("reportingComponent") or "")]
    reason, message = str(event.get("reason", "")), str(event.get("message", "")).strip()
    cells = (str(event.get("type", "")), reason, when, ", ".join(origin), message)
    return tuple(one_line(cell) for cell in cells)
