"""Every rule about jobs refuses what is wrong and takes what is right."""

from typing import Any

import pytest

from tests.admission.asking import create, job, policy, queue, task, update
from tests.admission.dict_view import DictView
from volcano_py.admission.contract import Options, Refusal, Request
from volcano_py.admission.rules import RULES

DEFAULT = queue("default")
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def volumes(*found: Any) -> dict[str, Any]:
    return job(volumes=list(found))


def policies(*found: Any) -> dict[str, Any]:
    return job(policies=list(found))


def partitions(total: int, size: int, **more: Any) -> dict[str, Any]:
    return {"totalPartitions": total, "partitionSize": size, **more}


BOTH = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}}
CPU = {"spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "1500m"}}}]}}
WHOLE = {"spec": {"containers": [{"name": "a", "image": "a", "resources": {"limits": {"cpu": "2"}}}]}}

REFUSED = {
    "no tasks": ({**job(), "spec": {"queue": "default"}}, "No task specified in job spec", "spec.tasks"),
    "mpi without master": (
        job(task("worker"), plugins={"mpi": ["--master=boss"]}),
        "mpi master task was not found",
        "spec.plugins[mpi]",
    ),
    "topology twice": (
        job(**BOTH),
        "must not specify 'highestTierAllowed' and 'highestTierName'",
        "spec.networkTopology",
    ),
    "topology of partitions twice": (
        job(task(replicas=4, partitionPolicy=partitions(2, 2, **BOTH))),
        "must not specify 'highestTierAllowed' and 'highestTierName'",
        "spec.tasks[0].partitionPolicy.networkTopology",
    ),
    "minimum of a task": (
        job(task(minAvailable=2)),
        "'minAvailable' is greater than 'replicas' in task: main, job: j",
        "spec.tasks[0].minAvailable",
    ),
    "two tasks of one name": (job(task(), task()), "duplicated task name main", "spec.tasks[1].name"),
    "long names": (
        job(task("t" * 40), name="j" * 40),
        f"create pod with name {'j' * 40}-{'t' * 40}-0 validate failed [name part must be no more than 63 bytes]",
        "spec.tasks[0].name",
    ),
    "bad name": (job(name="a_"), "create job with name a_ validate failed", "metadata.name"),
    "bad template": (
        job(task(template={"spec": {"containers": [{"name": "a"}]}})),
        "spec.task[0].template.spec.containers[0].image: Required value",
        "spec.tasks[0].template.spec.containers[0].image",
    ),
    "half a CPU for NUMA": (
        job(task(template=CPU, topologyPolicy="restricted")),
        "the cpu request isn't  an integer in spec.task[0] container[0]",
        "spec.tasks[0].template.spec.containers[0].resources.requests.cpu",
    ),
    "no CPU for NUMA": (job(task(topologyPolicy="best-effort")), "the cpu request isn't  an integer", ""),
    "no partitions": (
        job(task(partitionPolicy=partitions(0, 2))),
        "'TotalPartitions' must be greater than 0 in task: main, job: j",
        "spec.tasks[0].partitionPolicy.totalPartitions",
    ),
    "empty partitions": (
        job(task(partitionPolicy=partitions(2, 0))),
        "'PartitionSize' must be greater than 0 in task: main, job: j",
        "spec.tasks[0].partitionPolicy.partitionSize",
    ),
    "partitions of too few": (
        job(task(replicas=5, partitionPolicy=partitions(2, 2))),
        "TotalPartitions*PartitionSize in task: main",
        "spec.tasks[0].partitionPolicy",
    ),
    "least partitions against the minimum": (
        job(task(replicas=4, minAvailable=3, partitionPolicy=partitions(2, 2, minPartitions=1))),
        "MinPartitions*PartitionSize in task: main",
        "spec.tasks[0].partitionPolicy",
    ),
    "minimum of the job": (
        job(minAvailable=2),
        "job 'minAvailable' should not be greater than total replicas in tasks",
        "spec.minAvailable",
    ),
    "unknown plugin": (job(plugins={"magic": []}), "unable to find job plugin: magic", "spec.plugins[magic]"),
    "event and exit code": (
        policies(policy(exitCode=1)),
        "must not specify event and exitCode simultaneously",
        "spec.policies[0]",
    ),
    "neither event nor exit code": (
        policies({"action": "AbortJob"}),
        "either event and exitCode should be specified",
        "spec.policies[0]",
    ),
    "unknown event": (policies(policy(event="Rain")), "invalid policy event", "spec.policies[0].event"),
    "internal event": (policies(policy(event="OutOfSync")), "invalid policy event", "spec.policies[0].event"),
    "running as an event": (policies(policy(event="PodRunning")), "invalid policy event", "spec.policies[0].event"),
    "unknown action": (policies(policy(action="Dance")), "invalid policy action", "spec.policies[0].action"),
    "internal action": (policies(policy(action="SyncJob")), "invalid policy action", "spec.policies[0].action"),
    "one event in two policies": (
        policies(policy(), policy(event="", events=["PodEvicted", "PodFailed"])),
        "duplicate event PodFailed  across different policy",
        "spec.policies[1]",
    ),
    "exit code 0": (
        policies({"action": "AbortJob", "exitCode": 0}),
        "0 is not a valid error code",
        "spec.policies[0].exitCode",
    ),
    "one exit code in two policies": (
        policies({"exitCode": 3}, {"exitCode": 3}),
        "duplicate exitCode 3",
        "spec.policies[1].exitCode",
    ),
    "any event beside another": (
        policies(policy(event="*"), policy()),
        "if there's * here, no other policy should be here",
        "spec.policies",
    ),
    "policy of a task": (
        job(task(policies=[policy(event="Rain")])),
        'spec.tasks.policies: Invalid value: "Rain": invalid policy event',
        "spec.tasks[0].policies[0].event",
    ),
    "timeout that is none": (
        policies(policy(timeout="soon")),
        'time: invalid duration "soon"',
        "spec.policies[0].timeout",
    ),
    "estimate that is none": (job(runningEstimate="long"), 'time: invalid duration "long"', "spec.runningEstimate"),
    "volume without path": (volumes({}), " mountPath is required;", "spec.volumes[0].mountPath"),
    "two volumes at one path": (
        volumes({"mountPath": "/a", "volumeClaimName": "b"}, {"mountPath": "/a", "volumeClaimName": "c"}),
        " duplicated mountPath: /a;",
        "spec.volumes[1].mountPath",
    ),
    "volume of nothing": (
        volumes({"mountPath": "/a"}),
        "either VolumeClaim or VolumeClaimName must be specified",
        "spec.volumes[0]",
    ),
    "volume of two claims": (
        volumes({"mountPath": "/a", "volumeClaimName": "b", "volumeClaim": CLAIM}),
        "conflict: If you want to use an existing PVC",
        "spec.volumes[0]",
    ),
    "volume of a bad name": (
        volumes({"mountPath": "/a", "volumeClaimName": "A_B"}),
        "invalid VolumeClaimName A_B",
        "spec.volumes[0].volumeClaimName",
    ),
    "queue that does not exist": (
        job(queue="q"),
        'unable to find job queue: queue.scheduling.volcano.sh "q" not found',
        "spec.queue",
    ),
    "dependence on an unknown task": (
        job(task(dependsOn={"name": ["nobody"]})),
        "doesn't form a directed acyclic graph(DAG)",
        "spec.tasks",
    ),
    "dependence on itself": (
        job(task(dependsOn={"name": ["main"]})),
        "doesn't form a directed acyclic graph(DAG)",
        "spec.tasks",
    ),
}

TAKEN = {
    "plain": job(),
    "mpi with its master": job(task("boss"), plugins={"mpi": ["--master", "boss"]}),
    "mpi with the default master": job(task("master"), plugins={"mpi": []}),
    "topology by number": job(networkTopology={"mode": "hard", "highestTierAllowed": 0}),
    "topology by name": job(networkTopology={"highestTierName": "rack"}),
    "minimum of all": job(task(replicas=3, minAvailable=3), minAvailable=3),
    "names of 63 letters": job(task("t" * 30), name="j" * 30),
    "whole CPUs for NUMA": job(task(template=WHOLE, topologyPolicy="single-numa-node")),
    "no policy for NUMA": job(task(template=CPU, topologyPolicy="none")),
    "partitions": job(task(replicas=4, minAvailable=2, partitionPolicy=partitions(2, 2, minPartitions=1))),
    "partitions without a least": job(task(replicas=4, minAvailable=3, partitionPolicy=partitions(2, 2))),
    "plugins": job(task("master"), plugins={"env": [], "svc": None, "ssh": [], "pytorch": ["--port=1"]}),
    "events and exit codes": policies(policy(), policy(event="PodEvicted"), {"exitCode": 3}, {"exitCode": -1}),
    "one event twice in one policy": policies(policy(events=["PodFailed", "PodFailed"])),
    "timeout": job(runningEstimate="2h", policies=[policy(timeout="1m30s")]),
    "any event": policies(policy(event="*", action="TerminateJob")),
    "exit code with any action": policies({"exitCode": 3, "action": "Dance"}),
    "the same event for the job and a task": job(task(policies=[policy()]), policies=[policy()]),
    "volumes": volumes({"mountPath": "/a", "volumeClaimName": "b"}, {"mountPath": "/c", "volumeClaim": CLAIM}),
    "dependence": job(task("a"), task("b", dependsOn={"name": ["a"]}), task("c", dependsOn={"name": ["a", "b"]})),
    "dependence written twice": job(task("a"), task("b", dependsOn={"name": ["a", "a"]})),
    "nulls": {**job(), "spec": {**job()["spec"], "plugins": None, "policies": None, "volumes": None}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused(name: str) -> None:
    wrong, sentence, field = REFUSED[name]

    verdict = create("/jobs/validate", wrong, [DEFAULT])

    assert sentence in verdict.text
    assert not field or field in [refusal.field for refusal in verdict.refusals]


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_right_is_taken(name: str) -> None:
    assert create("/jobs/validate", TAKEN[name], [DEFAULT]).message == ""


def test_everything_that_is_wrong_is_said_at_once() -> None:
    wrong = job(task(), task(minAvailable=9), plugins={"magic": []}, queue="nowhere", volumes=[{}], name="a_")

    found = {refusal.field for refusal in create("/jobs/validate", wrong).refusals}

    assert found >= {
        "spec.tasks[1].name",
        "spec.tasks[1].minAvailable",
        "spec.plugins[magic]",
        "spec.queue",
        "spec.volumes[0].mountPath",
        "metadata.name",
    }


def test_valid_events_and_actions_are_told_once() -> None:
    text = create("/jobs/validate", policies(policy(event="a"), policy(event="b")), [DEFAULT]).text

    assert text.count("valid events are [* PodFailed") == 1
    assert "valid actions are [AbortJob RestartJob" in text


def test_plugins_of_other_packages_may_be_named() -> None:
    options = Options(job_plugins=frozenset({"magic"}))

    assert create("/jobs/validate", job(plugins={"magic": []}), [DEFAULT], options).allowed


# Updates


def changed(**spec: Any) -> dict[str, Any]:
    return job(task(replicas=2, minAvailable=1), **spec)


OLD = changed(minAvailable=1)


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        job(task(replicas=5, minAvailable=3), minAvailable=4),
        changed(minAvailable=2),
        changed(minAvailable=1, priorityClassName="high"),
        changed(minAvailable=1, volumes=[], policies=None),
    ],
)
def test_what_may_change(new: dict[str, Any]) -> None:
    assert update("/jobs/validate", new, OLD).message == ""


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (job(task(replicas=-1), minAvailable=-2), "'replicas' must be >= 0 in task: main"),
        (job(task(minAvailable=-1)), "'minAvailable' must be >= 0 in task: main"),
        (job(task(minAvailable=3)), "'minAvailable' must be <= 'replicas' in task: main"),
        (changed(minAvailable=3), "job 'minAvailable' must not be greater than total replicas"),
        (changed(minAvailable=-1), "job 'minAvailable' must be >= 0"),
        (changed(**BOTH), "must not specify 'highestTierAllowed' and 'highestTierName'"),
        (job(task(), task("other")), "job updates may not add or remove tasks"),
        (changed(minAvailable=1, queue="other"), "job updates may not change fields other than"),
        (changed(minAvailable=1, maxRetry=5), "job updates may not change fields other than"),
        (changed(minAvailable=1, policies=[policy()]), "job updates may not change fields other than"),
        (job(task(replicas=3, partitionPolicy=partitions(2, 2))), "TotalPartitions*PartitionSize in task: main"),
    ],
)
def test_what_may_not_change(new: dict[str, Any], sentence: str) -> None:
    assert sentence in update("/jobs/validate", new, OLD).message


def test_the_changed_fields_are_named() -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}

    (refusal,) = update("/jobs/validate", job(task(template=template), queue="b"), job(task())).refusals

    assert refusal.field == "spec.queue"
    assert "spec.tasks[0].template.spec.containers[0].image" in refusal.hint


def test_the_name_of_a_new_claim_may_be_filled_in() -> None:
    old = volumes({"mountPath": "/a", "volumeClaim": CLAIM})

    assert update(
        "/jobs/validate", volumes({"mountPath": "/a", "volumeClaim": CLAIM, "volumeClaimName": "x"}), old
    ).allowed
    assert not update("/jobs/validate", volumes({"mountPath": "/b", "volumeClaim": CLAIM}), old).allowed


def test_an_equal_amount_written_otherwise_is_no_change() -> None:
    def asking(cpu: str) -> dict[str, Any]:
        return job(
            task(
                template={"spec": {"containers": [{"name": "a", "image": "a", "resources": {"limits": {"cpu": cpu}}}]}}
            )
        )

    assert update("/jobs/validate", asking("1000m"), asking("1")).allowed
    assert not update("/jobs/validate", asking("2"), asking("1")).allowed


def of_pod(**fields: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox:1", **fields.pop("container", {})}]
    return job(task(template={"spec": {"containers": containers, **fields}}))


def with_every_default(written: dict[str, Any]) -> dict[str, Any]:
    """Return a job as it is stored after the webhook of defaults."""
    defaults = {one["path"].removeprefix("/spec/"): one["value"] for one in create("/jobs/mutate", written).patch}
    return {**written, "spec": {**written["spec"], **defaults}}


def spread(selector: Any) -> dict[str, Any]:
    one = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return of_pod(topologySpreadConstraints=[{key: value for key, value in one.items() if value is not None}])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(policies(policy(timeout="5m")), policies(policy(timeout="5m0s")), id="timeout"),
        pytest.param(job(runningEstimate="60m"), job(runningEstimate="1h0m0s"), id="runningEstimate"),
        pytest.param(of_pod(hostNetwork=False), of_pod(), id="hostNetwork"),
        pytest.param(of_pod(container={"stdin": False, "tty": False}), of_pod(), id="stdin"),
        pytest.param(of_pod(container={"resources": {"limits": {}}}), of_pod(), id="resources"),
        pytest.param(of_pod(securityContext={}, affinity={"podAffinity": {}}), of_pod(), id="empty parts of pods"),
        pytest.param(of_pod(container={"securityContext": {}, "lifecycle": {}}), of_pod(), id="empty parts"),
        pytest.param(
            of_pod(volumes=[{"name": "s", "emptyDir": {"sizeLimit": "1024Mi"}}]),
            of_pod(volumes=[{"name": "s", "emptyDir": {"sizeLimit": "1Gi"}}]),
            id="sizeLimit",
        ),
        pytest.param(
            of_pod(container={"livenessProbe": {"initialDelaySeconds": 0, "tcpSocket": {"port": 80}}}),
            of_pod(container={"livenessProbe": {"tcpSocket": {"port": 80}}}),
            id="probe",
        ),
    ],
)
def test_what_a_client_in_go_writes_otherwise_is_no_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert update("/jobs/validate", new, old).allowed
    assert update("/jobs/validate", old, new).allowed


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(job({**task(replicas=2), "name": ""}), id="a task without a name"),
        pytest.param(job(task(replicas=3), task("other")), id="two tasks"),
        pytest.param(of_pod(hostNetwork=True), id="hostNetwork"),
        pytest.param(job(task(), plugins={"pytorch": []}), id="plugins that need others"),
        pytest.param(job(task("master"), plugins={"mpi": []}), id="mpi"),
        pytest.param(job(task(replicas=4, partitionPolicy=partitions(2, 2, minPartitions=1))), id="partitions"),
    ],
)
def test_a_job_that_is_applied_again_without_its_defaults_does_not_change(written: dict[str, Any]) -> None:
    """kubectl apply, Argo CD and Helm replace the list of tasks as a whole, with what the user wrote."""
    old = with_every_default(written)
    again = {**old, "spec": {**old["spec"], "tasks": written["spec"]["tasks"]}}

    assert old != written
    assert update("/jobs/validate", again, old).message == ""
    assert update("/jobs/validate", written, old).message == ""  # kubectl replace
    assert update("/jobs/validate", old, again).message == ""


def test_a_field_that_is_left_out_still_changes_if_it_was_not_the_default() -> None:
    assert "spec.tasks[0].maxRetry" in update("/jobs/validate", job(task()), job(task(maxRetry=5))).refusals[0].hint
    assert not update("/jobs/validate", job(task()), job(task(), schedulerName="other")).allowed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(spread({}), spread(None), id="a selector of all pods"),
        pytest.param(
            volumes({"mountPath": "/a", "volumeClaim": {**CLAIM, "storageClassName": ""}}),
            volumes({"mountPath": "/a", "volumeClaim": CLAIM}),
            id="no storage class",
        ),
        pytest.param(of_pod(automountServiceAccountToken=False), of_pod(), id="a switch that is on if left out"),
        pytest.param(of_pod(terminationGracePeriodSeconds=0), of_pod(), id="no grace"),
        pytest.param(of_pod(hostNetwork=True), of_pod(), id="hostNetwork"),
        pytest.param(policies(policy(timeout="5m")), policies(policy(timeout="6m")), id="timeout"),
    ],
)
def test_what_means_something_if_it_is_empty_may_not_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert not update("/jobs/validate", new, old).allowed
    assert not update("/jobs/validate", old, new).allowed


@pytest.mark.parametrize("path", ["/jobs/validate", "/jobs/mutate"])
def test_other_operations_are_refused(path: str) -> None:
    assert RULES[path](Request("CONNECT"), DictView(), Options()).refusals == (
        Refusal(
            "expect operation to be 'CREATE' or 'UPDATE'"
            if path == "/jobs/validate"
            else "expect operation to be 'CREATE' "
        ),
    )


# Mutation


def patched(path: str, obj: dict[str, Any], options: Options | None = None) -> dict[str, Any]:
    return {one["path"]: one["value"] for one in create(path, obj, options=options).patch}


def test_a_job_gets_every_default() -> None:
    bare = {"spec": {"tasks": [{"replicas": 2, "template": {"spec": {"hostNetwork": True}}}], "plugins": {"mpi": []}}}

    found = patched("/jobs/mutate", bare, Options(scheduler_names=("mine", "volcano")))

    assert found == {
        "/spec/queue": "default",
        "/spec/schedulerName": "mine",
        "/spec/maxRetry": 3,
        "/spec/minAvailable": 2,
        "/spec/plugins": {"mpi": [], "svc": [], "ssh": []},
        "/spec/tasks": [
            {
                "replicas": 2,
                "name": "default0",
                "minAvailable": 2,
                "maxRetry": 3,
                "template": {"spec": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}},
            }
        ],
    }


def test_a_job_with_everything_stays_as_it_is() -> None:
    full = job(
        task(minAvailable=1, maxRetry=1), schedulerName="a", maxRetry=1, minAvailable=1, plugins={"svc": ["--x"]}
    )

    assert create("/jobs/mutate", full).patch == ()


def test_fields_that_nobody_here_knows_stay() -> None:
    found = patched("/jobs/mutate", job({**task(), "future": 1}))

    assert found["/spec/tasks"][0]["future"] == 1


def test_a_job_of_wrong_types_is_left_to_its_definition() -> None:
    verdict = create("/jobs/mutate", {"spec": {"tasks": "none"}})

    assert verdict.allowed
    assert verdict.patch == ()
    assert not create("/jobs/validate", {"spec": {"tasks": "none"}}).allowed
