"""The rules for a job that rests: nothing is left to do, nothing was forgotten."""

from tests.controllers.job.simulation import expected
from tests.controllers.job.simulation.auditor import need
from tests.controllers.job.simulation.causes import answered, index_of, task_of, version_of
from tests.controllers.job.simulation.server import Obj
from tests.controllers.job.simulation.world import World
from volcano_py.kube.resource import COMMANDS, CONFIG_MAPS, NETWORK_POLICIES, PODGROUPS, PODS, SERVICES


def check_rest(world: World) -> None:
    """Raise Wrong if a job that rests breaks a rule."""
    job = world.job
    assert job is not None
    status = job["status"]
    phase = status["state"]["phase"]
    pods = world.server.all(PODS)
    world.tell("rests in", phase, {k: v for k, v in status.items() if k != "conditions"})
    totals, by_task = expected.count(pods)
    for name, _ in expected.completed(status):
        totals["succeeded"] += 1
        phases = by_task.setdefault(name, {})
        phases["Succeeded"] = phases.get("Succeeded", 0) + 1
    finished = phase in ("Completed", "Failed", "Terminated")  # its pods may be gone, and still count
    for name in ("succeeded", "failed") if finished else ():
        totals[name] = max(totals[name], status.get(name, 0))
    for name, number in totals.items():
        need(status.get(name, 0) == number, f"at rest, {name} is {status.get(name, 0)}; there are {number}")
    counted = {name: task["phase"] for name, task in (status.get("taskStatusCount") or {}).items()}
    for name, phases in counted.items() if finished else ():
        there = by_task.get(name, {})
        by_task[name] = there | {phase: max(there.get(phase, 0), phases.get(phase, 0)) for phase in phases}
    need(counted == by_task, f"at rest, the tasks say {counted}; there are {by_task}")
    need(not world.server.all(COMMANDS), "at rest, a Command is left")
    need(
        expected.by_itself(job, status) is None,
        f"at rest, a job in {phase} should be {expected.by_itself(job, status)}",
    )
    need(phase in (*expected.FINAL, "Pending", "Running", "Restarting"), f"a job rests in {phase}")
    if phase in expected.FINAL:
        alive = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] not in expected.ENDED]
        need(not alive, f"pods of a job in {phase} live: {alive}")
        for resource in (PODGROUPS, CONFIG_MAPS, SERVICES, NETWORK_POLICIES):
            need(not world.server.all(resource), f"a job in {phase} keeps {resource.label}")
    elif phase in ("Pending", "Running"):
        _check_active(world, job, pods)


def _check_active(world: World, job: Obj, pods: list[Obj]) -> None:
    status, phase = job["status"], job["status"]["state"]["phase"]
    version = status.get("version", 0)
    ready: dict[str, int] = {}
    for pod in pods:
        ready[task_of(pod)] = ready.get(task_of(pod), 0) + expected.is_ready(pod)
    done = expected.completed(status)
    for name, _ in done:
        ready[name] = ready.get(name, 0) + 1
    for task in job["spec"]["tasks"]:
        there = sorted(
            [index_of(pod) for pod in pods if task_of(pod) == task["name"]]
            + [index for name, index in done if name == task["name"]]
        )
        wanted = list(range(task["replicas"]))
        if expected.may_start(job, task, ready):
            need(there == wanted, f"in {phase}, task {task['name']} has pods {there} and should have {wanted}")
        else:
            need(set(there) <= set(wanted) and len(set(there)) == len(there), f"task {task['name']} has {there}")
    for pod in pods:
        old = version_of(pod) < version
        if old:
            need(
                pod["status"]["phase"] in expected.ENDED and world.audit.retained,
                f"{pod['metadata']['name']} of an earlier version is left in version {version}",
            )
    _check_policies(world, job, pods)


def _check_policies(world: World, job: Obj, pods: list[Obj]) -> None:
    """Check that whatever a policy should have answered was answered."""
    status = job["status"]
    version = status.get("version", 0)
    for cause in world.causes.all:
        if cause.version != version or (cause.task, cause.index) in world.shrunk:
            continue
        if not set(world.audit.phases[max(0, cause.phases - 1) :]) <= {"Pending", "Running", "Restarting"}:
            continue
        if not cause.remembered and cause.lives != world.lives:
            continue  # the controller ended before it saw a pod of which nothing says that it existed
        if cause.event == "PodFailed" and not any(pod["metadata"]["uid"] == cause.uid for pod in pods):
            continue  # somebody took it away, which is another cause
        problem = answered(job, cause, pods)
        need(not problem, problem)
    for task in job["spec"]["tasks"]:
        name = task["name"]
        mine = [pod for pod in pods if task_of(pod) == name and version_of(pod) == version]
        done = [pod for pod in mine if pod["status"]["phase"] == "Succeeded"]
        scaled = any(shrunk == name for shrunk, _ in world.shrunk)
        if task["replicas"] and len(done) == task["replicas"] and not scaled:
            action = expected.answer(job, "TaskCompleted", name).action
            need(
                action not in (*expected.WHOLE, "RestartTask"),
                f"{action} on TaskCompleted of {name} did not happen",
            )
        spent = sum(expected.restarts(pod) for pod in mine)
        budget = expected.task_max_retry(task)
        if 0 <= budget <= spent:
            action = expected.answer(job, "TaskFailed", name).action
            need(action not in (*expected.WHOLE, "RestartTask"), f"{action} on TaskFailed of {name} did not happen")
    for group in world.server.all(PODGROUPS):
        if group["status"]["phase"] == "Unknown":
            action = expected.answer(job, "Unknown", "").action
            need(action not in expected.WHOLE, f"{action} on Unknown did not happen")
