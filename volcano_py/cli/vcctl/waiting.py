"""`vcctl job wait`."""

import re
import time
from typing import Final

from volcano_py.cli.vcctl.call import Call
from volcano_py.client.api import Obj
from volcano_py.client.problem import ApiProblem, Problem, Unreachable
from volcano_py.kube.resource import VCJOBS

PHASES: Final = (
    *("Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed"),
    *("Terminating", "Terminated", "Failed"),
)
_ENDS: Final = frozenset({"Completed", "Failed", "Terminated"})
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_WATCH_S: Final = 240.0
_PAUSE_S: Final = 0.5


def wait_job(call: Call) -> int:
    """Wait for a phase of a job, or for its end."""
    name, namespace = call.flags.text("name"), call.flags.text("namespace")
    if not name:
        raise Problem("job name (specified by --name or -N) is mandatory to wait for a particular job")
    wanted = _wanted(call.flags.text("for"))
    limit = _seconds(call.flags.text("timeout"))
    deadline = time.monotonic() + limit
    phase = _look(call, name, namespace, wanted)
    trouble: Problem | None = None
    while phase is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise trouble or Problem(
                f"job {namespace}/{name} is still {phase or 'without a phase'} after {call.flags.text('timeout')}; "
                f'"vcctl job why {name} -n {namespace}" says what it waits for'
            )
        try:
            if trouble is None:
                phase = _watch(call, name, namespace, wanted, min(left, _LONGEST_WATCH_S))
            else:
                phase, trouble = _look(call, name, namespace, wanted), None
        except Problem as problem:
            if not _passes(problem):
                raise
            trouble = problem
            time.sleep(min(_PAUSE_S, max(deadline - time.monotonic(), 0.0)))
    call.line(f"job {namespace}/{name}: {'deleted' if not wanted else 'condition met'}")
    return 0


def _passes(problem: Problem) -> bool:
    """Say whether a server that has answered before will answer again: it restarts, or has too much to do."""
    cause = problem if isinstance(problem, ApiProblem) else problem.__cause__
    return isinstance(problem, Unreachable) or (isinstance(cause, ApiProblem) and cause.status >= 500)


def _wanted(text: str) -> frozenset[str]:
    """Return the phases to wait for; none means the end of the object."""
    if text == "delete":
        return frozenset()
    kind, equals, value = text.partition("=")
    phases = frozenset(value.split(","))
    if kind != "phase" or not equals:
        raise Problem(f"--for {text!r} is not something to wait for: write --for=phase=Completed or --for=delete")
    if unknown := sorted(phases - set(PHASES)):
        raise Problem(f"{unknown[0]!r} is not a phase of a job; phases: {', '.join(PHASES)}")
    return phases


def _seconds(text: str) -> float:
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if text != "0" and (not parts or "".join(map("".join, parts)) != text):
        raise Problem(f"--timeout {text!r} is not a length of time: write 90s, 10m or 2h")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _look(call: Call, name: str, namespace: str, wanted: frozenset[str]) -> str | None:
    """Return the phase as it is; None if the wait is over."""
    try:
        with call.about(VCJOBS, name, f"vcctl job list -n {namespace}"):
            found = call.api.list(VCJOBS, namespace, fieldSelector=f"metadata.name={name}")
            if not found:
                call.api.get(VCJOBS, name, namespace)
    except Problem as problem:
        cause = problem.__cause__
        if not wanted and isinstance(cause, ApiProblem) and cause.status == 404:
            return None
        raise
    return _judged(found[0], wanted)


def _watch(call: Call, name: str, namespace: str, wanted: frozenset[str], limit_s: float) -> str | None:
    """Return the last phase that was seen within a time; None if the wait is over."""
    how = {"fieldSelector": f"metadata.name={name}", "timeoutSeconds": str(max(int(limit_s + 0.999), 1))}
    try:
        for change, obj in call.api.watch(VCJOBS, namespace, **how):
            if change == "DELETED":
                if not wanted:
                    return None
                raise Problem(f'job {namespace}/{name} was deleted; "vcctl job list -n {namespace}" lists the others')
            if _judged(obj, wanted) is None:
                return None
    except ApiProblem as problem:
        if problem.status != 410:  # the watch is too far behind: look again
            raise
    return _look(call, name, namespace, wanted)


def _judged(job: Obj, wanted: frozenset[str]) -> str | None:
    """Return the phase of a job, None if it is wanted; raise Problem if a wanted one cannot come any more."""
    metadata = job["metadata"]
    phase = str(((job.get("status") or {}).get("state") or {}).get("phase") or "")
    if phase in wanted:
        return None
    if wanted and phase in _ENDS:
        state = job["status"]["state"]
        why = ": ".join(str(state[name]) for name in ("reason", "message") if state.get(name))
        name, namespace = metadata["name"], metadata["namespace"]
        raise Problem(
            f"job {namespace}/{name} has ended as {phase}{f' ({why})' if why else ''}, so it will not be "
            f'{" or ".join(sorted(wanted))}; "vcctl job view {name} -n {namespace}" shows it'
        )
    return phase
