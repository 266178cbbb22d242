"""Plugins of jobs on a real API server: the files, variables and objects as a container sees them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from tests.e2e.container_view import CONFIG_MAP, SECRET, View, needs, view
from tests.e2e.jobs import CORE, Job, Jobs, owners
from tests.e2e.recorder import Obj
from tests.e2e.together import together
from tests.e2e.vcjobs import container, task, template

NETWORKING = "/apis/networking.k8s.io/v1"
START = ("Pending", "Running")


def with_init(**more: Any) -> dict[str, Any]:
    return template(init="exit 0", **more)


def pod_of(job: Job, pod: str) -> Obj:
    return job.pods()[f"{job.name}-{pod}"]


def look(jobs: Jobs, job: Job, pod: str, name: str = "main") -> View:
    """Return what a container of a pod sees."""
    found = pod_of(job, pod)
    objects = {need: obj for need in needs(found) if (obj := jobs.core(need.resource, need.name)) is not None}
    spec = found["spec"]
    (chosen,) = (each for each in [*spec.get("initContainers", ()), *spec["containers"]] if each["name"] == name)
    return view(found, chosen, objects)


def network_policy(jobs: Jobs, job: Job) -> Obj | None:
    return jobs.read(f"{NETWORKING}/n/networkpolicies/{job.name}")


def run(jobs: Jobs, tasks: Sequence[Mapping[str, Any]], plugins: Mapping[str, list[str]], **spec: Any) -> Job:
    job = jobs.create(tasks, plugins=plugins, **spec)
    job.wait_phases(*START)
    return job


# env and svc


@together
def test_env_tells_every_container_which_replica_it_belongs_to(jobs: Jobs) -> None:
    job = run(jobs, [task("worker", 2, with_init())], {"env": []})

    for index in (0, 1):
        for name in ("first", "main"):
            env = look(jobs, job, f"worker-{index}", name).env
            assert (env["VC_TASK_INDEX"], env["VK_TASK_INDEX"]) == (str(index), str(index))


@together
def test_svc_lists_the_addresses_of_all_pods_in_files_and_variables(jobs: Jobs) -> None:
    job = run(jobs, [task("ps", 1, with_init()), task("my-worker", 2, with_init())], {"svc": []})
    workers = [f"{job.name}-my-worker-{index}.{job.name}" for index in (0, 1)]
    servers = [f"{job.name}-ps-0.{job.name}"]

    config_map = jobs.core(CONFIG_MAP, f"{job.name}-svc")
    assert config_map is not None
    assert config_map["data"] == {
        "ps.host": "\n".join(servers),
        "VC_PS_HOSTS": ",".join(servers),
        "VC_PS_NUM": "1",
        "my_worker.host": "\n".join(workers),
        "VC_MY_WORKER_HOSTS": ",".join(workers),
        "VC_MY_WORKER_NUM": "2",
    }
    assert owners(config_map) == {job.uid}
    for name in ("first", "main"):
        seen = look(jobs, job, "my-worker-1", name)
        assert seen.files["/etc/volcano/my_worker.host"].text.split() == workers
        assert seen.files["/etc/volcano/ps.host"].text.split() == servers
        assert seen.env["VC_MY_WORKER_HOSTS"] == ",".join(workers)
        assert (seen.env["VC_MY_WORKER_NUM"], seen.env["VC_PS_NUM"]) == ("2", "1")
    spec = pod_of(job, "my-worker-1")["spec"]
    assert (spec["hostname"], spec["subdomain"]) == (f"{job.name}-my-worker-1", job.name)


@together
def test_svc_makes_the_addresses_known_and_admits_only_pods_of_the_job(jobs: Jobs) -> None:
    job = run(jobs, [task("worker", 1)], {"svc": ["--publish-not-ready-addresses=true"]})
    labels = {"volcano.sh/job-name": job.name, "volcano.sh/job-namespace": jobs.namespace}

    service = jobs.core("services", job.name)
    assert service is not None
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == labels
    assert service["spec"]["publishNotReadyAddresses"] is True
    policy = network_policy(jobs, job)
    assert policy is not None
    assert policy["spec"]["podSelector"]["matchLabels"] == labels
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": labels}}]}]
    assert labels.items() <= pod_of(job, "worker-0")["metadata"]["labels"].items()
    assert {"plugin-svc": "svc"}.items() <= job.status["controlledResources"].items()


@together
def test_svc_leaves_out_the_network_policy_and_the_variables_on_request(jobs: Jobs) -> None:
    job = run(jobs, [task("worker", 1)], {"svc": ["--disable-network-policy=true", "--inject-hosts-env=false"]})

    assert network_policy(jobs, job) is None
    seen = look(jobs, job, "worker-0")
    assert "VC_WORKER_HOSTS" not in seen.env
    assert "/etc/volcano/worker.host" in seen.files


# ssh


@together
def test_ssh_gives_every_container_the_same_working_key_pair_and_a_list_of_hosts(jobs: Jobs) -> None:
    job = run(jobs, [task("worker", 2, with_init())], {"ssh": ["--ssh-port=2022"], "svc": []})
    views = [look(jobs, job, f"worker-{index}", name) for index in (0, 1) for name in ("first", "main")]
    files = views[0].files

    assert all(each.files == files for each in views)
    private, public = (files[f"/root/.ssh/{name}"].text for name in ("id_rsa", "id_rsa.pub"))
    key = serialization.load_pem_private_key(private.encode(), None)
    written = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert public.split()[:2] == written.decode().split()[:2]
    assert files["/root/.ssh/authorized_keys"].text.split()[:2] == public.split()[:2]
    assert {file.mode for path, file in files.items() if path.startswith("/root/.ssh/")} == {0o600}
    config = files["/root/.ssh/config"].text
    assert "StrictHostKeyChecking no" in config
    for index in (0, 1):
        host = f"{job.name}-worker-{index}"
        assert f"Host {host}\n" in config
        assert f"HostName {host}.{job.name}\n" in config
    assert config.count("Port 2022") == 2


@together
def test_ssh_lists_the_hosts_of_a_job_that_has_grown_and_keeps_its_keys(jobs: Jobs) -> None:
    job = run(jobs, [task("worker", 1)], {"ssh": []})
    before = jobs.core("secrets", f"{job.name}-ssh")
    assert before is not None

    job.scale(worker=3)

    def config() -> str:
        found = jobs.core("secrets", f"{job.name}-ssh")
        assert found is not None
        assert {**found["data"], "config": ""} == {**before["data"], "config": ""}
        return base64.b64decode(found["data"]["config"]).decode()

    job.wait("names the new hosts", lambda: f"Host {job.name}-worker-2\n" in config())


@together
def test_ssh_puts_the_keys_where_the_job_wants_them(jobs: Jobs) -> None:
    job = run(jobs, [task("worker", 1)], {"ssh": ["--ssh-key-file-path=/home/me/.ssh"]})

    files = look(jobs, job, "worker-0").files
    assert files["/home/me/.ssh/id_rsa"].mode == 0o644


# Frameworks


@together
def test_tensorflow_describes_the_cluster_to_every_container(jobs: Jobs) -> None:
    job = run(jobs, [task("ps", 1), task("worker", 2)], {"tensorflow": [], "svc": []})

    for kind, index in (("ps", 0), ("worker", 0), ("worker", 1)):
        config = json.loads(look(jobs, job, f"{kind}-{index}").env["TF_CONFIG"])
        assert config["task"] == {"type": kind, "index": index}
        assert config["cluster"]["ps"] == [f"{job.name}-ps-0.{job.name}:2222"]
        assert config["cluster"]["worker"] == [f"{job.name}-worker-{each}.{job.name}:2222" for each in (0, 1)]


@together
def test_pytorch_gives_every_pod_its_rank_and_the_address_of_the_master(jobs: Jobs) -> None:
    job = run(jobs, [task("master", 1), task("worker", 2)], {"pytorch": ["--port=2345"], "svc": []})

    for pod, rank in (("master-0", 0), ("worker-0", 1), ("worker-1", 2)):
        env = look(jobs, job, pod).env
        assert env["MASTER_ADDR"] == f"{job.name}-master-0.{job.name}"
        assert (env["MASTER_PORT"], env["WORLD_SIZE"], env["RANK"]) == ("2345", "3", str(rank))
        ports = pod_of(job, pod)["spec"]["containers"][0]["ports"]
        assert {"name": "pytorchjob-port", "containerPort": 2345, "protocol": "TCP"} in ports


@together
def test_pytorch_tells_new_pods_the_new_size_and_says_that_running_ones_keep_the_old(jobs: Jobs) -> None:
    job = run(jobs, [task("master", 1), task("worker", 1)], {"pytorch": [], "svc": []})
    job.scale(minimum=2, worker=2)
    job.wait_running("master-0", "worker-0", "worker-1")

    assert look(jobs, job, "worker-1").env["WORLD_SIZE"] == "3"
    assert look(jobs, job, "worker-0").env["WORLD_SIZE"] == "2"
    job.wait("an event says so", lambda: any("WORLD_SIZE" in event["message"] for event in job.events()))


@together
def test_mpi_tells_the_master_its_workers(jobs: Jobs) -> None:
    job = run(jobs, [task("master", 1), task("worker", 2)], {"mpi": ["--port=2222"], "svc": [], "ssh": []})

    env = look(jobs, job, "master-0").env
    assert env["MPI_HOST"] == ",".join(f"{job.name}-worker-{index}.{job.name}" for index in (0, 1))
    assert "MPI_HOST" not in look(jobs, job, "worker-0").env
    for pod in ("master-0", "worker-0"):
        ports = pod_of(job, pod)["spec"]["containers"][0]["ports"]
        assert {"name": "mpijob-port", "containerPort": 2222, "protocol": "TCP"} in ports


@together
def test_ray_starts_a_head_and_workers_that_join_it(jobs: Jobs) -> None:
    head = template(containers=[container("", "head", command=None)])
    worker = template(containers=[container("", "worker", command=None)])
    job = run(jobs, [task("head", 1, head), task("worker", 2, worker)], {"ray": [], "svc": []})

    first = pod_of(job, "head-0")["spec"]["containers"][0]
    started = " ".join([*first["command"], *first.get("args", ())])
    for word in ("ray start", "--head", "--block", "--dashboard-host=0.0.0.0", "--port=6379", "--dashboard-port=8265"):
        assert word in started
    assert "--ray-client-server-port=10001" in started
    assert {port["name"]: port["containerPort"] for port in first["ports"]} == {
        "gcs": 6379,
        "dashboard": 8265,
        "client-server": 10001,
    }
    second = pod_of(job, "worker-1")["spec"]["containers"][0]
    joined = " ".join([*second["command"], *second.get("args", ())])
    assert "ray start" in joined
    assert f"--address={job.name}-head-0.{job.name}:6379" in joined
    service = jobs.core("services", f"{job.name}-head-svc")
    assert service is not None
    assert {port["name"]: (port["port"], port["targetPort"]) for port in service["spec"]["ports"]} == {
        "gcs": (6379, "gcs"),
        "dashboard": (8265, "dashboard"),
        "client-server": (10001, "client-server"),
    }
    labels = pod_of(job, "head-0")["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert not service["spec"]["selector"].items() <= pod_of(job, "worker-0")["metadata"]["labels"].items()


@together
def test_hcclrank_numbers_the_pods_from_the_master_on(jobs: Jobs) -> None:
    job = run(jobs, [task("master", 2), task("worker", 2)], {"hcclrank": []})

    ranks = {name: pod_of(job, name)["metadata"]["annotations"]["hccl/rankIndex"] for name in job.uids()}
    assert ranks == {"master-0": "0", "master-1": "1", "worker-0": "2", "worker-1": "3"}


@together
def test_hcclrank_takes_the_rank_that_pytorch_has_given(jobs: Jobs) -> None:
    job = run(jobs, [task("master", 1), task("worker", 2)], {"hcclrank": [], "pytorch": [], "svc": []})

    for pod in job.uids():
        assert pod_of(job, pod)["metadata"]["annotations"]["hccl/rankIndex"] == look(jobs, job, pod).env["RANK"]


# Life of the objects


def uids(jobs: Jobs, job: Job) -> dict[str, str | None]:
    """Return the UIDs of the objects that svc and ssh make, None for what does not exist."""
    found = {
        "configmap": jobs.core(CONFIG_MAP, f"{job.name}-svc"),
        "service": jobs.core("services", job.name),
        "policy": network_policy(jobs, job),
        "secret": jobs.core(SECRET, f"{job.name}-ssh"),
    }
    return {name: None if obj is None else obj["metadata"]["uid"] for name, obj in found.items()}


def listed(job: Job) -> list[str]:
    """Return the plugins whose objects exist, according to the status."""
    return [key for key in job.status.get("controlledResources", {}) if key.startswith("plugin-")]


@together
@pytest.mark.parametrize("action", ["RestartJob", "RestartPod"])
def test_the_objects_of_plugins_stay_over_a_restart(jobs: Jobs, action: str) -> None:
    pods = template("[ $RETRY = 0 ] && await go && exit 1; sleep infinity")
    policies = [{"event": "PodFailed", "action": action}]
    job = run(jobs, [task("worker", 2, pods)], {"svc": [], "ssh": []}, policies=policies)
    made = uids(jobs, job)
    keys = look(jobs, job, "worker-1").files
    assert None not in made.values()
    job.say("go", "worker-0")
    job.wait_phases(*START, "Restarting", *START)
    job.wait_running("worker-0", "worker-1")

    assert uids(jobs, job) == made
    assert look(jobs, job, "worker-0").files == keys


@together
def test_the_objects_of_plugins_go_when_the_job_is_suspended_and_come_back_when_it_is_resumed(jobs: Jobs) -> None:
    job = run(jobs, [task("worker", 1)], {"svc": [], "ssh": []})
    job.command("AbortJob")
    job.wait_phases(*START, "Aborting", "Aborted")
    job.wait("its objects are gone", lambda: set(uids(jobs, job).values()) == {None})
    job.wait("the status says so", lambda: not listed(job))
    job.command("ResumeJob")
    job.wait_phases(*START, "Aborting", "Aborted", "Restarting", *START)
    job.wait_running("worker-0")

    assert None not in uids(jobs, job).values()


@together
@pytest.mark.parametrize("script", ["sleep 1", "sleep 1; exit 1"])
def test_the_objects_of_plugins_go_when_the_job_has_finished(jobs: Jobs, script: str) -> None:
    job = jobs.create([task("worker", 1, template(script))], plugins={"svc": [], "ssh": []})
    job.wait("has finished", lambda: job.phase in {"Completed", "Failed"})
    job.wait("its objects are gone", lambda: set(uids(jobs, job).values()) == {None})
    job.rests()
    assert not listed(job)


@together
def test_a_service_of_the_user_is_neither_taken_nor_deleted(jobs: Jobs) -> None:
    name = jobs.name()
    spec = {"clusterIP": "None", "selector": {"app": "mine"}}
    path = f"{CORE}/namespaces/{jobs.namespace}/services"
    mine = jobs.plane.request("POST", path, {"metadata": {"name": name}, "spec": spec})["metadata"]["uid"]
    job = jobs.create([task("worker", 1)], name=name, plugins={"svc": []})
    job.wait("an event says so", lambda: any(name in event["message"] for event in job.events("PluginError")))
    job.delete()
    job.wait("is gone with its pods", lambda: job.gone() and not job.uids())

    left = jobs.core("services", name)
    assert left is not None
    assert left["metadata"]["uid"] == mine
    assert not owners(left)


@together
def test_an_argument_that_a_plugin_does_not_know_is_an_event_and_the_job_runs(jobs: Jobs) -> None:
    job = run(jobs, [task("worker", 1)], {"svc": ["--colour=blue"]})

    job.wait("an event says so", lambda: any("colour" in event["message"] for event in job.events()))


@together
def test_a_job_with_an_unknown_plugin_says_so(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 1)], plugins={"dancing": []})
    job.wait(
        "an event says so", lambda: any("dancing" in event["message"] for event in job.events("PluginError")), 30.0
    )
    job.wait("its status says so", lambda: "dancing" in job.status.get("state", {}).get("message", ""))

    assert job.uids() == {}
