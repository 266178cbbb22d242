"""Every command against an API server."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
import yaml

from tests.cli.vcctl.running import Cluster
from volcano_py.kube.resource import COMMANDS, EVENTS, JOB_FLOWS, JOB_TEMPLATES, QUEUES, VCJOBS

POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
TEMPLATE = {
    "apiVersion": "flow.volcano.sh/v1alpha1",
    "kind": "JobTemplate",
    "metadata": {"name": "step"},
    "spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": POD}]},
}


def test_a_job_from_flags_has_one_task_without_a_name(cluster: Cluster) -> None:
    line = (
        "job run -N hello -n default -i alpine -r 3 -m 2 -R cpu=500m,memory=1Gi -L cpu=2,memory=2Gi -q research -S mine"
    )

    assert cluster.says(line) == "run job hello successfully\n"

    spec = cluster.api.get(VCJOBS, "hello", "default")["spec"]
    assert (spec["minAvailable"], spec["schedulerName"], spec["queue"]) == (2, "mine", "research")
    (task,) = spec["tasks"]
    (container,) = task["template"]["spec"]["containers"]
    assert ("name" in task, task["replicas"]) == (False, 3)
    assert task["template"]["metadata"] == {"name": "hello", "labels": {"job.volcano.sh": "hello"}}
    assert task["template"]["spec"]["restartPolicy"] == "Never"
    assert container == {
        "name": "hello",
        "image": "alpine",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}},
    }


def test_a_request_raises_a_limit_that_nobody_gave(cluster: Cluster) -> None:
    cluster.says("job run -N larger -R cpu=2")
    cluster.says("job run -N smaller -L cpu=100m,memory=10Mi")

    larger, smaller = (
        cluster.api.get(VCJOBS, name, "default")["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]
        for name in ("larger", "smaller")
    )
    assert larger == {"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "100Mi"}}
    assert smaller["requests"] == smaller["limits"] == {"cpu": "100m", "memory": "10Mi"}


def test_a_job_from_a_file(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **_plain("filed")}))
    cluster.namespace("elsewhere")

    assert cluster.says(f"job run -f {path} -n elsewhere") == "run job filed successfully\n"
    assert cluster.api.get(VCJOBS, "filed", "elsewhere")["spec"]["minAvailable"] == 1


def _plain(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1}]}}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("job run -n default", "job name cannot be left blank"),
        ("job run -N x -R cpu", "invalid argument syntax cpu, expected <resource>=<value> in --requests"),
        ("job run -N x -R cpu=lots", "--requests: 'lots' is not a quantity"),
        ("job run -f /tmp/job.json", "only support yaml file"),
        ("job run -f /no/job.yaml", "file /no/job.yaml cannot be read: No such file or directory"),
        ("job run -N Hello_World", "Hello_World"),
        (
            "job run -N x -n nowhere",
            'job: namespaces "nowhere" not found; "kubectl get namespaces" lists those that exist',
        ),
        ("job view", "job name (specified by --name or -N) is mandatory to view a particular job"),
        (
            "job view -N gone",
            '"gone" not found in namespace default; "vcctl job list -n default" lists those that exist',
        ),
        (
            "job view -N gone -n nowhere",
            'namespace nowhere does not exist either: "kubectl get namespaces" lists those',
        ),
        ("job why gone", '"gone" not found in namespace default'),
        ("job logs gone", '"gone" not found in namespace default'),
        ("job wait gone --for=phase=Running", '"gone" not found in namespace default'),
        ("job wait gone --for=phase=Runing", "'Runing' is not a phase of a job; phases: Pending,"),
        ("job wait gone --for=something", "write --for=phase=Completed or --for=delete"),
        ("job wait gone --for=delete --timeout=soon", "--timeout 'soon' is not a length of time"),
        ("job view -N x -n EMPTY", "the namespace must not be empty"),
        ("job suspend", "(specified by --name or -N) is mandatory to suspend"),
        ("job resume -N gone", '"gone" not found'),
        ("job delete -N gone", '"gone" not found'),
        ("queue get", "queue name must be specified"),
        (
            "queue get -n gone",
            'queues.scheduling.volcano.sh "gone" not found; "vcctl queue list" lists those that exist',
        ),
        ("queue why -n gone", '"gone" not found'),
        ("queue delete -n gone", '"gone" not found'),
        ("queue create -n x -w 0", "weight 0 of queue x is not allowed: write a number from 1 to 65535"),
        ("queue operate -n gone -a open", '"gone" not found'),
        ("queue operate -n gone -a update -w 3", '"gone" not found'),
        ("queue operate -n x -a shut", "action shut invalid, valid actions are open, close and update"),
        ("jobflow create", "the file with the jobflows must be specified"),
        ("jobflow create -f /no/flow.yaml", "file /no/flow.yaml cannot be read"),
        ("jobflow get", "jobflow name must be specified"),
        (
            "jobflow get -N gone",
            'not found in namespace default; "vcctl jobflow list -n default" lists those that exist',
        ),
        ("jobflow delete -N gone", '"gone" not found'),
        ("jobflow describe -N gone", '"gone" not found'),
        ("jobtemplate describe -N gone -o xml", "invalid argument 'xml' for -o: write one of yaml, json"),
        ("job list -k /no/kubeconfig", "kubeconfig /no/kubeconfig does not exist or is not a file; check --kubeconfig"),
        ("job list --context other", "does not have context 'other'"),
        ("job list -s http://127.0.0.1:1", "the API server http://127.0.0.1:1 cannot be reached (Connection refused)"),
        ("job list -s ftp://x", "'ftp://x' is not the address of an API server"),
        ("job list -s foo:bar", "'foo:bar' is not the address of an API server"),
        ("completion tcsh", "invalid"),
    ],
)
def test_what_is_wrong_gets_one_sentence_and_255(cluster: Cluster, line: str, sentence: str) -> None:
    if line == "completion tcsh":
        sentence = "tcsh is not supported: write vcctl completion bash, zsh or fish"
    assert sentence in cluster.refuses(line, EMPTY="")


@pytest.mark.parametrize("line", ["job list", "pod list", "jobflow describe", "jobtemplate list", "job list -o json"])
def test_a_list_of_a_namespace_that_does_not_exist_is_empty_with_a_warning(cluster: Cluster, line: str) -> None:
    ran, told = cluster.warned(f"{line} -n nowhere")

    assert ran.code == 0
    assert ran.out == "No resources found\n" or (line.endswith("json") and '"items": []' in ran.out)
    assert told == 'Warning: namespace nowhere does not exist; "kubectl get namespaces" lists those that do\n'


@pytest.mark.parametrize("program", ["vsub", "vcancel", "vsuspend", "vresume"])
def test_programs_of_one_command_fail_without_a_path(cluster: Cluster, program: str) -> None:
    assert cluster.refuses("", program).startswith("Failed to: job name ")


def test_a_broken_file_is_named(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    for text, sentence in (
        ("a: [", "is not YAML"),
        ("", "has no object"),
        ("- 1", "it is no map with apiVersion, kind and metadata"),
        ("kind: JobTemplate\nmetadata: {name: a}", "has a JobTemplate of flow.volcano.sh/v1alpha1"),
        ("metadata: {}", "without a name"),
    ):
        path.write_text(text)
        assert sentence in cluster.refuses(f"jobflow create -f {path}")


def test_a_broken_kubeconfig_is_named(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    for text, sentence in (
        ("a: [", "cannot be read"),
        ("[]", "is not a kubeconfig"),
        ("{}", "has no current-context"),
        ("{current-context: a}", "does not have context 'a'"),
        ("{current-context: a, contexts: [{name: a, context: {cluster: b}}]}", "names no server"),
    ):
        path.write_text(text)
        assert sentence in cluster.refuses(f"job list -k {path}")


def test_suspend_and_resume_leave_commands_for_the_controllers(cluster: Cluster) -> None:
    space = cluster.namespace("commands")
    uid = cluster.job("train", space)["metadata"]["uid"]

    assert cluster.says(f"job suspend -N train -n {space}") == ""
    assert cluster.says(f"-n train -N {space}", "vresume") == ""

    found = {one["action"]: one for one in cluster.api.list(COMMANDS, space)}
    assert found.keys() == {"AbortJob", "ResumeJob"}
    assert found["AbortJob"]["metadata"]["name"].startswith("train-abortjob-")
    assert found["ResumeJob"]["metadata"]["name"].startswith("train-resumejob-")
    for one in found.values():
        assert one["target"] == {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "train",
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        assert one["metadata"]["ownerReferences"] == [one["target"]]


def test_jobs_are_deleted(cluster: Cluster) -> None:
    space = cluster.namespace("deleting")
    cluster.job("a", space)
    cluster.job("b", space)

    assert cluster.says(f"job delete -N a -n {space}") == "delete job a successfully\n"
    assert cluster.says(f"-n b -N {space}", "vcancel") == "cancel job b successfully\n"
    assert cluster.says(f"job list -n {space}") == "No resources found\n"


def test_vsub_takes_defaults_from_the_environment(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    space = cluster.namespace("submitted")
    monkeypatch.setenv("VOLCANO_DEFAULT_JOB_NAMESPACE", space)
    monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "debian")
    monkeypatch.setenv("VOLCANO_SCHEDULER_NAME", "another")

    cluster.says("-n a -c COMMAND", "vsub", COMMAND="sh -c 'sleep 10'")
    cluster.says("-n b -N default -i alpine -S volcano", "vsub")

    spec = cluster.api.get(VCJOBS, "a", space)["spec"]
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert (spec["schedulerName"], container["image"]) == ("another", "debian")
    assert container["command"] == ["sh", "-c", "sleep 10"]
    spec = cluster.api.get(VCJOBS, "b", "default")["spec"]
    assert spec["schedulerName"] == "volcano"
    assert spec["tasks"][0]["template"]["spec"]["containers"][0]["image"] == "alpine"


def test_jobs_are_chosen_by_queue_scheduler_name_and_labels(cluster: Cluster) -> None:
    space = cluster.namespace("choosing")
    cluster.job("train-1", space)
    cluster.job("train-2", space, queue="research")
    cluster.job("serve", space, schedulerName="other")
    cluster.api.patch(VCJOBS, "serve", {"metadata": {"labels": {"team": "a"}}}, space)

    def names(flags: str) -> list[str]:
        found = cluster.says(f"job list -n {space} -o name {flags}").split()
        return [one.removeprefix("job.batch.volcano.sh/") for one in found]

    assert names("") == ["serve", "train-1", "train-2"]
    assert names("--selector train") == ["train-1", "train-2"]
    assert names("--selector team=a") == ["serve"]
    assert names("-q research") == ["train-2"]
    assert names("-S other") == ["serve"]
    assert names("-q research -S other") == []


def test_every_list_speaks_json_and_yaml(cluster: Cluster) -> None:
    space = cluster.namespace("formats")
    cluster.job("a", space)
    cluster.api.create(JOB_TEMPLATES, TEMPLATE, space)
    for line in (f"job list -n {space}", f"jobtemplate list -n {space}", "queue list", f"pod list -n {space}"):
        as_json = json.loads(cluster.says(f"{line} -o json"))
        assert as_json["kind"] == "List"
        assert yaml.safe_load(cluster.says(f"{line} -o yaml")) == as_json
        assert all(one["kind"] and "managedFields" not in one["metadata"] for one in as_json["items"])
    one = json.loads(cluster.says(f"job view a -n {space} -o json"))
    assert (one["kind"], one["metadata"]["name"]) == ("Job", "a")


def test_view_shows_tasks_conditions_and_events(cluster: Cluster) -> None:
    space = cluster.namespace("viewing")
    cluster.job("train", space)
    cluster.phase("train", space, "Running")
    from volcano_py.kube.resource import EVENTS

    for name, reason in (("train.1", "Started"), ("trainer.1", "Other")):
        event = {
            "metadata": {"name": name},
            "involvedObject": {"kind": "Job", "name": "train", "namespace": space},
            "type": "Normal",
            "reason": reason,
            "message": "it runs",
            "count": 1,
            "source": {"component": "vc-controller-manager"},
        }
        cluster.api.create(EVENTS, event, space)

    text = cluster.says(f"job view -N train -n {space}")

    assert "Name:       \ttrain\n" in text
    assert "    Phase:\tRunning\n" in text
    assert "Started" in text
    assert "Other" not in text
    head = next(line for line in text.splitlines() if line.startswith("Type"))
    assert head.split() == ["Type", "Reason", "Age", "Form", "Message"]


def test_a_queue_is_created_listed_changed_closed_and_deleted(cluster: Cluster) -> None:
    assert cluster.says("queue create") == ""
    cluster.says("queue create -n research -w 3")
    assert cluster.api.get(QUEUES, "research")["spec"]["weight"] == 3
    assert "test " in cluster.says("queue list")
    assert "already exists; choose another name or delete it first" in cluster.refuses("queue create -n research")

    cluster.says("queue operate -n research -a update -w 7")
    cluster.says("queue operate -n research -a close")
    cluster.says("queue operate -n research -a open")

    assert "research                 7 " in cluster.says("queue get -n research")
    found = {one["action"]: one for one in cluster.api.list(COMMANDS, "default")}
    assert found["CloseQueue"]["metadata"]["name"].startswith("research-closequeue-")
    assert found["OpenQueue"]["target"]["kind"] == "Queue"
    assert cluster.says("queue delete -n research") == ""
    cluster.refuses("queue get -n research")


def test_job_flows_and_templates_are_created_and_deleted_from_files(cluster: Cluster, tmp_path: Path) -> None:
    space = cluster.namespace("flowing")
    path = tmp_path / "templates.yaml"
    second = {**TEMPLATE, "metadata": {"name": "second", "namespace": space}}
    path.write_text(yaml.safe_dump_all([{**TEMPLATE, "metadata": {"name": "first"}}, None, second]))
    flows = tmp_path / "flow.yaml"
    flow = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "f", "namespace": space}}
    flows.write_text(yaml.safe_dump({**flow, "spec": {"flows": [{"name": "first"}]}}))

    created = cluster.says(f"jobtemplate create -f {path}")
    assert created == f"Created JobTemplate: default/first\nCreated JobTemplate: {space}/second\n"
    assert cluster.says(f"jobflow create -f {flows}") == f"Created JobFlow: {space}/f\n"
    again = cluster.run(f"jobflow create -f {flows}")
    assert again.code == 255
    assert f"create JobFlow {space}/f: " in again.out

    assert cluster.says(f"jobflow get -N f -n {space}").startswith("Name    Namespace    Phase    Age ")
    described = yaml.safe_load(cluster.says(f"jobflow describe -N f -n {space}"))
    assert described["spec"]["flows"] == [{"name": "first"}]
    assert json.loads(cluster.says(f"jobflow describe -n {space} -o json"))["metadata"]["name"] == "f"
    assert cluster.says(f"jobflow delete -N f -n {space}") == f"Deleted JobFlow: {space}/f\n"
    deleted = cluster.says(f"jobtemplate delete -f {path}")
    assert deleted == f"Deleted JobTemplate: default/first\nDeleted JobTemplate: {space}/second\n"
    assert cluster.api.list(JOB_FLOWS, space) == []


def test_wait_ends_when_the_phase_comes(cluster: Cluster) -> None:
    space = cluster.namespace("waiting")
    cluster.job("train", space, "Pending")
    timer = threading.Timer(0.4, lambda: cluster.phase("train", space, "Completed"))
    began = time.monotonic()
    timer.start()

    assert cluster.says(f"job wait train -n {space} --for=phase=Completed --timeout=20s") == (
        f"job {space}/train: condition met\n"
    )
    assert 0.3 < time.monotonic() - began < 10
    timer.join()


def test_wait_says_that_a_phase_cannot_come_any_more(cluster: Cluster) -> None:
    space = cluster.namespace("waiting")
    cluster.job("broken", space, "Pending")
    cluster.phase("broken", space, "Failed", reason="MaxRetryReached", message="pod x failed")

    told = cluster.refuses(f"job wait broken -n {space} --for=phase=Completed --timeout=20s")

    assert (
        f"job {space}/broken has ended as Failed (MaxRetryReached: pod x failed), so it will not be Completed" in told
    )


def test_wait_gives_up_and_names_the_next_command(cluster: Cluster) -> None:
    space = cluster.namespace("waiting")
    cluster.job("slow", space, "Pending")

    told = cluster.refuses(f"job wait slow -n {space} --for=phase=Running --timeout=300ms")

    assert f'is still Pending after 300ms; "vcctl job why slow -n {space}" says what it waits for' in told


def test_wait_for_the_end_of_a_job(cluster: Cluster) -> None:
    space = cluster.namespace("waiting")
    cluster.job("ending", space, "Pending")
    timer = threading.Timer(0.4, lambda: cluster.api.delete(VCJOBS, "ending", space))
    timer.start()

    assert cluster.says(f"job wait ending -n {space} --for=delete --timeout=20s") == f"job {space}/ending: deleted\n"
    timer.join()
    assert cluster.says(f"job wait ending -n {space} --for=delete") == f"job {space}/ending: deleted\n"


def test_names_of_the_cluster_complete(cluster: Cluster) -> None:
    space = cluster.namespace("completing")
    cluster.job("train-1", space)
    cluster.job("train-2", space)
    cluster.job("serve", space)

    def offered(line: str) -> list[str]:
        words = ["__complete", *line.split(), *([""] if line.endswith(" ") else [])]
        ran = cluster.run(" ".join(word or "EMPTY" for word in words), EMPTY="")
        return [one.partition("\t")[0] for one in ran.out.splitlines()]

    assert offered(f"job view -n {space} -N tr") == ["train-1", "train-2"]
    assert offered(f"job why -n {space} ") == ["serve", "train-1", "train-2"]
    assert space in offered("job list -n comp")
    assert offered("job list -o ") == ["json", "yaml", "wide", "name"]
    assert offered("job li") == ["list"]
    assert offered("job list --name") == ["--namespace"]
    assert offered("job list --output=j") == ["--output=json"]
    assert offered("job run -f ") == [":files"]
    assert offered("job view -k /no/kubeconfig -N ") == []
    assert offered("job list --context ") == ["volcano-py"]
    assert offered("job list -k /no/kubeconfig --context ") == []
    assert offered("queue operate -a ") == ["open", "close", "update"]
    assert offered("job wait --for phase=A") == ["phase=Aborted"]
    assert "phase=Running" in [one.removeprefix("--for=") for one in offered("job wait --for=")]
    assert set(offered("")) == {"job", "queue", "pod", "jobflow", "jobtemplate", "version", "completion"}


A_TASK = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}


def test_flags_may_stand_before_the_command(cluster: Cluster) -> None:
    space = cluster.namespace("before")
    cluster.job("train", space, "Running")
    expected = cluster.says(f"job list -n {space}")

    assert cluster.says(f"-n {space} job list") == expected
    assert cluster.says(f"job --namespace={space} list") == expected
    assert cluster.says(f"-n {space} -o name job list") == "job.batch.volcano.sh/train\n"
    assert "unknown flag" in cluster.refuses(f"--nonsense job list -n {space}")


def test_the_name_of_a_queue_may_stand_alone(cluster: Cluster) -> None:
    cluster.says("queue create alone -w 3")

    assert cluster.says("queue get alone -o name") == "queue.scheduling.volcano.sh/alone\n"
    cluster.says("queue operate alone -a update -w 4")
    cluster.says("queue delete alone")


def test_a_file_of_another_namespace_than_the_flag_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    space, path = cluster.namespace("one"), tmp_path / "job.yaml"
    body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"minAvailable": 1, "tasks": [A_TASK]}}
    path.write_text(yaml.safe_dump({**body, "metadata": {"name": "train", "namespace": "other"}}))

    assert cluster.refuses(f"job run -f {path} -n {space}") == (
        f"Failed to run job: file {path} puts job train into namespace other, and --namespace says {space}: "
        "leave one of them out"
    )
    path.write_text(yaml.safe_dump({**body, "metadata": {"name": "train", "namespace": "gone"}}))
    assert 'namespaces "gone" not found' in cluster.refuses(f"job run -f {path}")


def test_a_file_may_leave_the_name_to_the_server(cluster: Cluster, tmp_path: Path) -> None:
    space, path = cluster.namespace("generated"), tmp_path / "job.yaml"
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"generateName": "train-"}}
    path.write_text(yaml.safe_dump({**job, "spec": {"minAvailable": 1, "tasks": [A_TASK]}}))

    said = cluster.says(f"job run -f {path} -n {space}")

    (made,) = cluster.api.list(VCJOBS, space)
    assert said == f"run job {made['metadata']['name']} successfully\n"


def test_warnings_of_the_server_are_shown_apart_from_the_output(cluster: Cluster, tmp_path: Path) -> None:
    space, path = cluster.namespace("warned"), tmp_path / "job.yaml"
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}}
    path.write_text(yaml.safe_dump({**job, "spec": {"minAvailable": 1, "queeu": "a", "tasks": [A_TASK]}}))

    ran, warnings = cluster.warned(f"job run -f {path} -n {space}")

    assert ran.out == "run job train successfully\n"
    assert warnings == 'Warning: unknown field "spec.queeu"\n'


def test_a_job_that_is_being_deleted_says_so(cluster: Cluster) -> None:
    space = cluster.namespace("going")
    cluster.job("train", space, "Pending")
    cluster.api.patch(VCJOBS, "train", {"metadata": {"finalizers": ["example.com/audit"]}}, space)
    cluster.says(f"job delete train -n {space}")

    assert "being deleted, and waits until example.com/audit" in cluster.says(f"job why train -n {space}")
    told = cluster.refuses(f"job run train -n {space}")
    assert told.endswith("try again when it is gone, or choose another name")
    cluster.api.patch(VCJOBS, "train", {"metadata": {"finalizers": None}}, space)


def test_events_cannot_repaint_the_screen(cluster: Cluster) -> None:
    space = cluster.namespace("painted")
    cluster.job("train", space, "Pending")
    job = cluster.api.get(VCJOBS, "train", space)
    about = {"kind": "Job", "name": "train", "namespace": space, "uid": job["metadata"]["uid"]}
    about["apiVersion"] = "batch.volcano.sh/v1alpha1"
    event = {"metadata": {"name": "train.1"}, "involvedObject": about, "type": "Warning", "reason": "Red\x1b[2J"}
    cluster.api.create(EVENTS, {**event, "message": "on \x1b[31mfire\nnext row", "count": 1}, space)

    for command in ("why", "view"):
        said = cluster.says(f"job {command} train -n {space}")
        assert "\x1b" not in said
        assert "on ^[[31mfire next row" in " ".join(said.split())
