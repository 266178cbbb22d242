"""The words for why an action on a job is executed: they stand in its state and in its events."""

from volcano_py.controllers.job import policies
from volcano_py.controllers.job.observed import Observed
from volcano_py.controllers.job.policies import Request, Resolved


def why(seen: Observed, request: Request, resolved: Resolved) -> str:
    """Return what happened to which pod, with which exit code, and under which policy."""
    job = seen.job
    member = seen.members.get(request.pod)
    what = f"pod {job.metadata.namespace}/{request.pod}"
    match request.event:
        case policies.POD_FAILED:
            reason = f" ({member.reason})" if member is not None and member.reason else ""
            text = f"{what} failed with exit code {request.exit_code}{reason}"
        case policies.POD_EVICTED:
            text = f"{what} was evicted or deleted"
        case policies.POD_PENDING:
            text = f"{what} is pending"
        case policies.UNKNOWN:
            text = "some pods run and the others cannot be scheduled (PodGroup phase Unknown)"
        case policies.TASK_COMPLETED:
            text = f"all pods of task {request.task} succeeded"
        case policies.TASK_FAILED:
            text = f"the pods of task {request.task} used up its restarts"
        case _:
            text = f"{what}: {request.event}"
    return f"{text}; {policy_of(resolved)}"


def policy_of(resolved: Resolved) -> str:
    """Return which policy asks for an action."""
    policy = resolved.policy
    owner = f"policy of {f'task {resolved.task}' if resolved.task else 'the job'}"
    if policy is None:
        return owner
    if policy.exit_code is not None:
        return f"{owner}: exitCode {policy.exit_code}"
    named = [one for one in dict.fromkeys((policy.event, *policy.events)) if one]
    return f"{owner}: event {', '.join(named)}"
