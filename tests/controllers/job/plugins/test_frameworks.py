"""Plugins tensorflow, mpi, ray and hcclrank."""

import json

import pytest

from tests.controllers.job.plugins.seen import a_vcjob, the_pod
from volcano_py.api.batch import Job
from volcano_py.controllers.job.plugins.contract import PluginProblem
from volcano_py.controllers.job.plugins.registry import build_plugins
from volcano_py.kube.resource import SERVICES

NAMED = {name: {"containers": [{"name": name}, {"name": "side"}]} for name in ("head", "worker")}
INIT = {"initContainers": [{"name": "fetch"}]}


def warning_of(job: Job) -> str:
    (warning,) = build_plugins(job).warnings
    return warning


def customize(job: Job, task: int = 0) -> None:
    found = job.spec.tasks[task]
    pod = {"metadata": {"name": f"train-{found.name}-0"}, **found.template}
    build_plugins(job).customize(pod, job, found, 0)


def test_tensorflow_tells_the_cluster_and_the_place_in_it():
    pod = the_pod(a_vcjob({"tensorflow": []}, worker=(2, INIT), ps=1, chief=0, evaluator=1), "worker", 1)

    assert json.loads(pod["main"].env["TF_CONFIG"]) == {
        "cluster": {
            "ps": ["train-ps-0.train:2222"],
            "worker": ["train-worker-0.train:2222", "train-worker-1.train:2222"],
            "evaluator": ["train-evaluator-0.train:2222"],
        },
        "task": {"type": "worker", "index": 1},
    }
    assert pod["fetch"].env == {}


def test_tensorflow_reads_roles_and_port_from_arguments():
    job = a_vcjob({"tensorflow": ["--ps=store", "--worker=w", "--chief=boss", "--port=80"]}, store=1, w=1, boss=1)

    config = the_pod(job, "boss")["main"].env["TF_CONFIG"]

    assert config == (
        '{"cluster":{"ps":["train-store-0.train:80"],"worker":["train-w-0.train:80"],"chief":["train-boss-0.train:80"]},'
        '"task":{"type":"chief","index":0}}'
    )


def test_tensorflow_calls_a_task_without_role_by_its_name_and_leaves_it_out_of_the_cluster():
    config = json.loads(the_pod(a_vcjob({"tensorflow": []}, worker=1, board=2), "board", 1)["main"].env["TF_CONFIG"])

    assert config == {"cluster": {"worker": ["train-worker-0.train:2222"]}, "task": {"type": "board", "index": 1}}


def test_tensorflow_has_an_address_for_each_pod_also_if_the_template_sets_the_host():
    job = a_vcjob({"tensorflow": []}, worker=(2, {"hostname": "h", "subdomain": "s"}))

    config = json.loads(the_pod(job, "worker")["main"].env["TF_CONFIG"])

    assert config["cluster"]["worker"] == ["h.s:2222", "h.s:2222"]


def test_tensorflow_leaves_a_single_pod_alone():
    assert the_pod(a_vcjob({"tensorflow": []}, worker=1), "worker")["main"].env == {}


def test_tensorflow_says_that_no_task_has_a_role():
    assert warning_of(a_vcjob({"tensorflow": []}, a=1, b=1)) == (
        'plugin "tensorflow": no task is named ps, worker, chief, evaluator: the cluster in TF_CONFIG is empty'
    )


def test_tensorflow_refuses_a_cluster_that_no_container_could_start_with():
    with pytest.raises(PluginProblem, match=r'^plugin "tensorflow": TF_CONFIG would have \d+ bytes'):
        customize(a_vcjob({"tensorflow": []}, worker=6000))


def test_mpi_tells_the_master_the_hosts_of_the_workers_and_opens_the_port_everywhere():
    job = a_vcjob({"mpi": []}, master=(1, INIT), worker=(2, INIT), side=1)

    master, worker, side = (the_pod(job, task) for task in ("master", "worker", "side"))

    hosts = "train-worker-0.train,train-worker-1.train"
    assert [master[name].env for name in ("fetch", "main")] == [{"MPI_HOST": hosts}] * 2
    assert [worker[name].env for name in ("fetch", "main")] == [{}, {}]
    for pod in (master, worker, side):
        assert all(seen.ports == {"mpijob-port": 22} for seen in pod.containers.values())


def test_mpi_reads_names_and_port_from_arguments_and_the_host_from_the_template():
    job = a_vcjob({"mpi": ["--master=boss", "--worker=hand", "--port=2222"]}, boss=1, hand=(3, {"hostname": "h"}))

    seen = the_pod(job, "boss")["main"]

    assert seen.env == {"MPI_HOST": "h.train"}
    assert seen.ports == {"mpijob-port": 2222}


def test_mpi_keeps_a_port_that_the_template_has():
    template = {"containers": [{"name": "main", "ports": [{"name": "ssh", "containerPort": 22}]}]}

    assert the_pod(a_vcjob({"mpi": []}, worker=(1, template)), "worker")["main"].ports == {"ssh": 22}


def test_mpi_does_nothing_to_a_master_without_worker_task():
    job = a_vcjob({"mpi": []}, master=1)

    seen = the_pod(job, "master")["main"]

    assert (seen.env, seen.ports) == ({}, {})
    assert warning_of(job) == 'plugin "mpi": no task is named "worker", so no pod gets MPI_HOST: set --worker'


def test_mpi_sets_no_variable_while_there_are_no_workers():
    seen = the_pod(a_vcjob({"mpi": []}, master=1, worker=0), "master")["main"]

    assert (seen.env, seen.ports) == ({}, {"mpijob-port": 22})


def test_mpi_leaves_out_a_list_that_no_container_could_start_with():
    job = a_vcjob({"mpi": []}, master=1, worker=6000)

    assert the_pod(job, "master")["main"].env == {}
    assert "variable MPI_HOST" in warning_of(job)


def test_ray_starts_the_head_with_its_ports():
    pod = the_pod(a_vcjob({"ray": []}, head=(1, NAMED["head"]), worker=2), "head")

    assert pod["head"].command == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0"
        " --port=6379 --dashboard-port=8265 --ray-client-server-port=10001",
    ]
    assert pod["head"].ports == {"gcs": 6379, "dashboard": 8265, "client-server": 10001}
    assert (pod["side"].command, pod["side"].ports) == ([], {})


def test_ray_starts_a_worker_with_the_address_of_the_head():
    head = {**NAMED["head"], "hostname": "boss", "subdomain": "own"}
    pod = the_pod(a_vcjob({"ray": ["--port=7000"]}, head=(1, head), worker=(2, NAMED["worker"])), "worker", 1)

    assert pod["worker"].command == ["sh", "-c", "ray start --block --address=boss.own:7000"]
    assert (pod["worker"].ports, pod["side"].command) == ({}, [])


def test_ray_leaves_other_tasks_alone():
    pod = the_pod(a_vcjob({"ray": []}, head=(1, NAMED["head"]), other=(1, NAMED["head"])), "other")

    assert pod["head"].command == []


def test_a_service_leads_to_the_head_of_ray():
    job = a_vcjob({"ray": ["--head=boss", "--clientPort=4567"]}, boss=1)

    (service,) = build_plugins(job).objects(job)

    assert service.resource is SERVICES
    assert service.body["metadata"] == {"name": "train-head-svc"}
    assert service.body["spec"] == {
        "selector": {
            "volcano.sh/job-name": "train",
            "volcano.sh/job-namespace": "ns",
            "volcano.sh/task-spec": "boss",
        },
        "ports": [
            {"name": "gcs", "port": 6379, "protocol": "TCP", "targetPort": "gcs"},
            {"name": "dashboard", "port": 8265, "protocol": "TCP", "targetPort": "dashboard"},
            {"name": "client-server", "port": 4567, "protocol": "TCP", "targetPort": "client-server"},
        ],
    }


def test_the_service_of_ray_finds_ports_that_the_template_names_otherwise():
    ports = [
        {"name": "redis", "containerPort": 6379},
        {"containerPort": 8265},
        {"name": "client-server", "containerPort": 1},
    ]
    job = a_vcjob({"ray": []}, head=(1, {"containers": [{"name": "head", "ports": ports}]}))

    (service,) = build_plugins(job).objects(job)

    assert [port["targetPort"] for port in service.body["spec"]["ports"]] == ["redis", 8265, 10001]
    assert the_pod(job, "head")["head"].ports == {"redis": 6379, "8265": 8265, "client-server": 1}


def test_ray_without_head_is_a_problem_of_the_job():
    job = a_vcjob({"ray": ["--head=boss"]}, worker=1)
    text = 'plugin "ray": no task is named "boss": name the task of the head with --head'

    with pytest.raises(PluginProblem) as of_objects:
        build_plugins(job).objects(job)
    with pytest.raises(PluginProblem) as of_a_pod:
        customize(job)

    assert (str(of_objects.value), str(of_a_pod.value)) == (text, text)


def test_ray_says_which_container_it_does_not_find():
    job = a_vcjob({"ray": []}, head=(1, NAMED["head"]), worker=1)

    assert warning_of(job) == (
        'plugin "ray": task "worker" has no container "worker", so none runs Ray: set --workerContainer'
    )


@pytest.mark.parametrize(
    ("task", "index", "rank"), [("master", 1, "1"), ("worker", 0, "2"), ("worker", 2, "4"), ("other", 0, None)]
)
def test_hcclrank_numbers_masters_first(task, index, rank):
    pod = the_pod(a_vcjob({"hcclrank": []}, master=2, worker=3, other=1), task, index).pod

    assert pod["metadata"].get("annotations", {}).get("hccl/rankIndex") == rank


def test_hcclrank_reads_names_from_arguments_and_needs_no_master():
    pod = the_pod(a_vcjob({"hcclrank": ["--master=boss", "--worker=hand"]}, hand=3), "hand", 2).pod

    assert pod["metadata"]["annotations"] == {"hccl/rankIndex": "2"}


def test_hcclrank_takes_the_rank_that_pytorch_sets_whatever_the_order_of_their_names():
    job = a_vcjob({"hcclrank": [], "pytorch": []}, master=2, worker=3)

    pod = the_pod(job, "worker", 2)

    assert pod["main"].env["RANK"] == "3"
    assert pod.pod["metadata"]["annotations"] == {"hccl/rankIndex": "3"}


def test_hcclrank_takes_the_first_variable_with_a_value():
    env = [[{"name": "RANK", "valueFrom": {}}], [{"name": "A", "value": "1"}, {"name": "RANK", "value": "9"}]]
    template = {"containers": [{"name": str(number), "env": variables} for number, variables in enumerate(env)]}
    job = a_vcjob({"hcclrank": []}, worker=(1, template))
    task = job.spec.tasks[0]
    pod = {"metadata": {"name": "train-worker-0", "annotations": {"a": "b"}}, **task.template}

    build_plugins(job).customize(pod, job, task, 0)

    assert pod["metadata"]["annotations"] == {"a": "b", "hccl/rankIndex": "9"}


def test_hcclrank_keeps_the_annotation_of_the_template():
    job = a_vcjob({"hcclrank": []}, worker=1)
    task = job.spec.tasks[0]
    pod = {"metadata": {"name": "train-worker-0", "annotations": {"hccl/rankIndex": "7"}}, **task.template}

    build_plugins(job).customize(pod, job, task, 0)

    assert pod["metadata"]["annotations"] == {"hccl/rankIndex": "7"}
