"""Our programs take Volcano's place on a real API server and give it back, by the commands of docs/migration.md.

Volcano's programs are not here. Its objects stand as they leave them, and a stand-in says what its job controller would
do with each job (tests/migration).
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.ports import free_ports
from tests.controlplane.waiting import wait_until
from tests.e2e import volcano_programs
from tests.e2e.control_plane import ControlPlane
from tests.e2e.deployed import BIN, Deployed
from tests.e2e.guide import Guide, blocks
from tests.e2e.volcano_left import NAMESPACE, VolcanoLeft, uids, versions
from tests.migration.volcano_job_kinds import Pods

RUNNING = WAITING = 50
SMALL = 3
"""Jobs that wait although there is room: Volcano ended just before it placed them."""
OTHERS = {
    "aborted": "Aborted",
    "completed": "Completed",
    "failed": "Failed",
    "terminated": "Terminated",
    "restarting": "Pending",
    "aborting": "Aborted",
    "completing": "Completed",
    "terminating": "Terminated",
}
"""Other states in which Volcano left jobs, and the phase that follows."""
PROGRAMS = ("volcano-scheduler", "volcano-controllers", "volcano-admission")


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """An API server of its own: the scheduler's view is the whole cluster."""
    with ControlPlane() as found:
        yield found


@pytest.fixture
def left(plane: ControlPlane, tmp_path: Path) -> VolcanoLeft:
    """A cluster that Volcano has served for a while."""
    volcano_programs.install(plane, tmp_path)
    plane.kubectl("create", "namespace", NAMESPACE)
    found = VolcanoLeft(plane)
    found.nodes("old", 4, cpu=10)
    found.queues(research="Open", archive="Closed")
    return found


class Switch:
    """The commands of the guide, and our programs as processes."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.guide = Guide(plane, folder)
        self.deployed = Deployed(plane)
        self.stopped_at = self.start_s = 0.0

    def save(self) -> None:
        """Save what the guide says to save; the release of Volcano stands in for what Helm would print."""
        (self.guide.folder / "volcano-before.yaml").write_text(yaml.safe_dump_all(volcano_programs.release()))
        self.run("Before the switch")

    def run(self, heading: str, programs: bool = True) -> None:
        """Run all commands below a heading; our programs start where an operator waits for them."""
        for commands in blocks(heading):
            for command in commands:
                if command.startswith("helm ") or "owner=helm" in command:
                    continue  # there is no Helm here; the chart has tests of its own
                if "rollout status" in command:
                    if programs:
                        self.start()
                    continue
                self.guide.run(command)
                if "delete deployment" in command:
                    self.stopped_at = time.monotonic()

    def start(self) -> None:
        """Start our programs as kubelets would, and wait until they are ready."""
        begun = time.monotonic()
        for name in PROGRAMS:
            self.deployed.start(name)
        self.deployed.ready()
        self.start_s = time.monotonic() - begun

    def writes(self) -> dict[str, Counter[str]]:
        """Return how many writes each program has sent, by verb and resource."""
        line = re.compile(
            r'^volcano_py_api_requests_total\{resource="([^"]*)",result="2..",verb="([^"]*)"\} ([0-9.e+]+)$', re.M
        )
        found: dict[str, Counter[str]] = {}
        for name in ("volcano-scheduler", "volcano-controllers"):
            counts = found[name] = Counter()
            for resource, verb, count in line.findall(self.deployed.metrics(name)):
                if verb not in ("get", "list", "watch"):
                    counts[f"{verb} {resource}"] += int(float(count))
        return found


@pytest.fixture
def switch(plane: ControlPlane, tmp_path: Path) -> Switch:
    folder = tmp_path / "operator"
    folder.mkdir()
    return Switch(plane, folder)


def everything_of_volcano(plane: ControlPlane) -> dict[str, Any]:
    """Return what Volcano's programs need, without what changes with every write."""
    found = {}
    for one in volcano_programs.release():
        meta = one["metadata"]
        where = ["-n", meta["namespace"]] if "namespace" in meta else []
        shown = plane.kubectl("get", one["kind"], meta["name"], *where, "-ojson", check=False)
        found[f"{one['kind']} {meta['name']}"] = essence(json.loads(shown.stdout)) if shown.returncode == 0 else None
    return found


def nobody_but_volcano_is_asked(plane: ControlPlane) -> bool:
    """Say whether only webhooks are left that Volcano's program answers, and no network policy of ours."""
    wanted = {one["metadata"]["name"] for one in volcano_programs.release() if "Webhook" in one["kind"]}
    kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    names = plane.kubectl("get", kinds, "-o", "jsonpath={.items[*].metadata.name}").stdout.split()
    policies = plane.kubectl("get", "networkpolicies,poddisruptionbudgets", "-n", "volcano-system", "-oname").stdout
    return set(names) == wanted and not policies.strip()


def essence(one: Any) -> Any:
    """Return an object without status, versions, UIDs and the notes of kubectl."""
    one.pop("status", None)
    meta = one["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "annotations"):
        meta.pop(name, None)
    if one["kind"] == "ConfigMap":
        meta.pop("labels", None)  # of Helm; what is restored from a file has none
    for hook in one.get("webhooks", ()):
        hook["clientConfig"].pop("caBundle", None)
    if one["kind"] == "Service":
        for name in ("clusterIP", "clusterIPs"):
            one["spec"].pop(name, None)
    return one


class Story:
    """The steps of a switch and of the way back, and what must hold after each."""

    def __init__(self, left: VolcanoLeft, switch: Switch, folder: Path) -> None:
        self.left = left
        self.plane = left.plane
        self.switch = switch
        self._folder = folder

    def populate(self, running: int = RUNNING, waiting: int = WAITING) -> None:
        """Let Volcano have worked for a while, and remember how all stands."""
        left = self.left
        left.running(running)
        left.waiting(waiting)
        left.jobs([(f"small-{number}", "plain", "pending-with-pods", Pods(cpu="100m")) for number in range(SMALL)])
        for state in OTHERS:
            left.in_state(state)
        left.cron_job("nightly")
        left.job_flow("pipeline")
        left.deployment("web")
        self.command = left.job("told-to-stop", "plain", "running")
        left.command("told-to-stop", "AbortJob")
        volcano_programs.install_webhooks(self.plane, self._folder)
        self.volcano = everything_of_volcano(self.plane)
        left.settle()
        self.remember()

    def remember(self) -> None:
        """Remember the objects as they are."""
        left = self.left
        del left.states["told-to-stop"]
        self.pods = left.pods_of("running")
        self.waiting = left.pods_of("pending-with-pods")
        self.web = {name: one for name, one in left.all("pods").items() if name.startswith("web-")}
        self.jobs, self.groups = left.all("jobs"), left.all("podgroups")
        self.queues = left.queue_states()

    def unmarked_groups(self) -> int:
        """Return how many PodGroups of jobs our controllers have not looked at."""
        groups = {name: one for name, one in self.left.all("podgroups").items() if not name.startswith("podgroup-")}
        return sum("volcano.sh/job-version" not in one["metadata"].get("annotations", {}) for one in groups.values())

    def first_bind_s(self) -> float:
        """Wait until the small jobs run; return the seconds from the end of Volcano's to the first bound pod."""
        left = self.left
        left.wait("a pod is bound", lambda: any("nodeName" in one["spec"] for one in left.starting_with("small-")))
        found = time.monotonic() - self.switch.stopped_at
        left.wait("small jobs run", lambda: len(left.in_phase("Running", "small-")) == SMALL)
        return found

    def nothing_is_disturbed(self) -> None:
        """Every pod that ran is the same, to the byte; nothing was made twice; every state is kept."""
        left = self.left
        left.settle()
        assert versions(left.pods_of("running")) == versions(self.pods)
        assert {name: uids(left.all("pods")).get(name) for name in self.web} == uids(self.web)
        now = left.all("jobs")
        assert now.keys() == self.jobs.keys()
        for name, state in left.states.items():
            if state == "running":
                assert now[name]["status"] == self.jobs[name]["status"], name
                assert now[name]["spec"] == self.jobs[name]["spec"], name
        groups = left.all("podgroups")
        for name, one in self.groups.items():
            if name in groups and name.startswith("run-"):
                assert groups[name]["spec"] == one["spec"], name
        assert left.queue_states() == self.queues

    def waiting_jobs_wait(self) -> None:
        """Jobs without room wait, with the pods that they had."""
        left = self.left
        assert len(left.in_phase("Pending", "wait-")) == len([one for one in self.jobs if one.startswith("wait-")])
        assert uids(left.pods_of("pending-with-pods")).items() >= uids(self.waiting).items()

    def other_states_go_on(self) -> None:
        """What Volcano was about to do is done; what had ended stays, with true counters."""
        left = self.left
        for state, phase in OTHERS.items():
            left.wait(f"{state} becomes {phase}", lambda: len(left.in_phase(phase, f"{state}-")) == 3)  # noqa: B023
        now = left.all("jobs")
        assert now["completed-plain"]["status"]["succeeded"] == 3
        assert now["failed-plain"]["status"]["failed"] == 3
        left.wait("the Command is carried out", lambda: left.phases()["told-to-stop"] == "Aborted")
        assert left.phases()["pipeline-train"] == "Running"

    def room_comes(self) -> None:
        """Waiting jobs start, each with the pods that it had."""
        left = self.left
        left.nodes("new", 4, cpu=200)
        count = len([one for one in self.jobs if one.startswith("wait-")])
        left.wait("all waiting jobs run", lambda: len(left.in_phase("Running", "wait-")) == count)
        left.wait("restarted jobs run", lambda: len(left.in_phase("Running", "restarting-")) == 3)
        assert uids(left.all("pods")).items() >= uids(self.waiting).items()

    def users_go_on(self) -> None:
        """Jobs end, fail, are scaled and restarted by their policies; a new one is created and checked."""
        left = self.left
        running = [name for name in self.jobs if name.startswith("run-")]
        kinds = ("plain", "evictions", "ttl", "elastic", "success")
        run = {kind: next(name for name in running if name.endswith(f"-{kind}")) for kind in kinds}
        left.end_pods(run["ttl"], 0)
        left.end_pods(run["success"], 0, only="worker-0")
        left.end_pods(run["plain"], 1)
        left.delete_pod(f"{run['evictions']}-worker-0")
        left.scale(run["elastic"], 5)
        left.wait("a job completes", lambda: left.phases()[run["ttl"]] == "Completed")
        left.wait("a job has enough successes", lambda: left.phases()[run["success"]] == "Completed")
        left.wait("a job fails", lambda: left.phases()[run["plain"]] == "Failed")
        left.wait("a job restarts", lambda: left.all("jobs")[run["evictions"]]["status"].get("retryCount") == 1)
        left.wait("it runs again", lambda: left.phases()[run["evictions"]] == "Running")
        left.wait("a job grows", lambda: left.all("jobs")[run["elastic"]]["status"].get("running") == 5)
        left.create_new("made-by-us")
        left.wait("a new job runs", lambda: left.phases()["made-by-us"] == "Running")
        for state in ("Closed", "Open"):
            left.queue_command("research", {"Closed": "CloseQueue", "Open": "OpenQueue"}[state])
            left.wait(f"research is {state}", lambda: left.queue_states()["research"] == state)  # noqa: B023

    def give_back(self) -> None:
        """Go back by the guide; everything that Volcano needs is as it was."""
        self.left.settle()
        given = uids(self.left.all("pods"))
        self.switch.deployed.stop()
        self.switch.run("Go back", programs=False)
        assert everything_of_volcano(self.plane) == self.volcano
        assert nobody_but_volcano_is_asked(self.plane)
        assert uids(self.left.all("pods")) == given

    def volcano_goes_on(self) -> None:
        """Volcano's job controller would leave every job that runs alone, and its queue controller may write."""
        left = self.left
        phases, found = left.phases(), left.of_volcano()
        running = [name for name, phase in phases.items() if phase == "Running"]
        assert len(running) >= len([one for one in self.jobs if one.startswith(("run-", "wait-"))]) - 3
        assert {name: found[name].restless for name in running if found[name].restless} == {}
        assert {name: found[name].phase for name in running} == dict.fromkeys(running, "Running")
        assert {name: one.group_changes for name, one in found.items() if one.group_changes} == {}
        assert [name for name, one in found.items() if one.created or one.deleted] == []
        for name, state in left.queue_states().items():
            left.apply_state(name, state)
        for state in ("Closed", "Open"):
            left.apply_state("research", state)


@pytest.fixture
def story(left: VolcanoLeft, switch: Switch, tmp_path: Path) -> Story:
    return Story(left, switch, tmp_path)


@pytest.mark.timeout(900)
def test_volcano_is_replaced_and_comes_back_and_no_pod_is_restarted(story: Story) -> None:
    story.populate()
    story.switch.save()
    story.switch.run("With kustomize")

    bound_s = story.first_bind_s()
    story.nothing_is_disturbed()
    story.waiting_jobs_wait()
    story.other_states_go_on()
    print(
        f"\nfirst bind {bound_s:.1f} s after the end of Volcano's programs, "
        f"of these {story.switch.start_s:.1f} s to start ours; "
        f"writes: {story.switch.writes()}"
    )
    story.room_comes()
    story.users_go_on()
    story.give_back()
    story.volcano_goes_on()


@pytest.mark.timeout(900)
def test_a_take_over_in_which_our_controllers_are_killed_goes_on(story: Story) -> None:
    story.populate(running=28, waiting=14)
    story.switch.save()
    story.switch.run("With kustomize", programs=False)
    deployed, processes = story.switch.deployed, story.plane.processes
    deployed.start("volcano-scheduler").start("volcano-admission")
    for _ in range(3):
        before = story.unmarked_groups()
        deployed.start("volcano-controllers", flags=["--kube-api-qps=10", "--kube-api-burst=1"])
        (replica,) = deployed.replicas("volcano-controllers")
        wait_until("our controllers have begun", lambda: story.unmarked_groups() < before, 60.0)  # noqa: B023
        processes.kill(replica.process)
        deployed.stop("volcano-controllers")
        assert story.unmarked_groups() > 0, "the take-over had ended before the controllers were killed"
    deployed.start("volcano-controllers").ready()

    story.first_bind_s()
    story.nothing_is_disturbed()
    story.other_states_go_on()
    story.room_comes()
    story.give_back()
    story.volcano_goes_on()


@pytest.mark.timeout(900)
def test_volcano_is_scaled_to_zero_instead_of_deleted_and_its_webhooks_stand_until_ours_come(story: Story) -> None:
    story.populate(running=14, waiting=14)
    story.switch.save()
    guide, deployed = story.switch.guide, story.switch.deployed
    guide.run(f"kubectl -n volcano-system scale deployment {' '.join(PROGRAMS)} --replicas=0")
    story.switch.stopped_at = time.monotonic()
    guide.run("kubectl apply -k manifests/rbac")
    guide.run("kubectl apply -k manifests/deployment")
    deployed.start("volcano-scheduler").start("volcano-controllers").ready()

    story.first_bind_s()
    story.nothing_is_disturbed()
    assert story.left.in_phase("Pending", "restarting-"), "nobody answers Volcano's webhooks, which admit PodGroups"
    assert not [one for one in story.left.all("podgroups") if one.startswith("restarting-")]
    guide.run("kubectl apply -k manifests/webhooks")
    deployed.start("volcano-admission").ready()
    story.room_comes()
    story.users_go_on()


@pytest.mark.timeout(600)
def test_our_scheduler_beside_volcano_counts_its_pods_as_load_and_leaves_its_objects_alone(
    left: VolcanoLeft, plane: ControlPlane
) -> None:
    left.running(14)
    left.waiting(6)
    lease = take_lease(plane, "volcano", "volcano-scheduler-0")
    left.settle()
    groups, pods = left.all("podgroups"), left.all("pods")
    with_pods = [name for name in groups if name.startswith("run-") or "-with-pods" in name]
    (command,) = [one for block in blocks("Side by side") for one in block]
    ports = free_ports(2)
    arguments = command.replace("~/.kube/config", str(plane.kubeconfig)).split()
    conf = plane.processes.folder / "volcano-scheduler.conf"
    conf.write_text(volcano_programs.SCHEDULER_CONF)
    plane.processes.start(
        "beside",
        [
            BIN / arguments[0],
            *(str(conf) if one == "volcano-scheduler.conf" else one for one in arguments[1:]),
            f"--listen-address=127.0.0.1:{ports[0]}",
            f"--healthz-address=127.0.0.1:{ports[1]}",
        ],
    )
    ours = {"schedulerName": "volcano-py"}
    left.job("first", "plain", "pending-with-pods", Pods(cpu="5"), spec=ours)
    left.wait("a job of ours has its pods on nodes", lambda: placed(left, "first-") == 3)
    # The nodes have 10 CPUs. Beside a pod of Volcano and one of ours, there is no room for another one with 5.
    left.job("second", "plain", "pending-with-pods", Pods(cpu="5"), spec=ours)
    left.wait("it is told why it waits", lambda: bool(conditions(left, "second-")))
    assert placed(left, "second-") == 0
    left.settle(5.0)

    after = left.all("podgroups")
    assert versions({name: after[name] for name in with_pods}) == versions({name: groups[name] for name in with_pods})
    assert versions(left.all("pods")).items() >= versions(pods).items()
    changed = [name for name in groups if versions(after)[name] != versions(groups)[name]]
    assert {after[name]["status"]["phase"] for name in changed} <= {"Inqueue"}, "the guide names no other change"
    assert plane.request("GET", LEASES + "/volcano") == lease
    assert plane.request("GET", LEASES + "/volcano-py")["spec"]["holderIdentity"]


LEASES = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"


def take_lease(plane: ControlPlane, name: str, holder: str) -> Any:
    """Let a program of Volcano hold a lease."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-11-20T10:00:00.000000Z"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
    return plane.request("POST", LEASES, body)


def placed(left: VolcanoLeft, stem: str) -> int:
    """Return how many pods whose name begins so have a node."""
    return sum("nodeName" in one["spec"] for one in left.starting_with(stem))


def conditions(left: VolcanoLeft, stem: str) -> list[Any]:
    """Return what our scheduler says about waiting pods; what Volcano has said is older."""
    found = [one for pod in left.starting_with(stem) for one in pod["status"].get("conditions", ())]
    return [
        one for one in found if "Insufficient cpu" in one.get("message", "") and "4 nodes" not in one["message"][:6]
    ]
