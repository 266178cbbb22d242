"""Plugin svc: names, addresses and who may connect."""

import contextlib
import tracemalloc

import pytest

from tests.controllers.job.plugins.seen import a_vcjob, the_pod
from volcano_py.api.batch import Job
from volcano_py.controllers.job.plugins.contract import PluginObject, PluginProblem
from volcano_py.controllers.job.plugins.hosts import addresses, size_of_addresses
from volcano_py.controllers.job.plugins.registry import build_plugins
from volcano_py.kube.resource import CONFIG_MAPS, NETWORK_POLICIES, SERVICES

OF_THE_JOB = {"volcano.sh/job-name": "train", "volcano.sh/job-namespace": "ns"}


def objects_of(job: Job) -> dict[str, PluginObject]:
    return {one.body["kind"]: one for one in build_plugins(job).objects(job)}


def test_a_container_sees_the_addresses_of_all_tasks_as_files_and_variables():
    template = {"initContainers": [{"name": "fetch"}]}
    pod = the_pod(a_vcjob({"svc": []}, ps=(1, template), model_worker=2), "ps")

    for container in ("fetch", "main"):
        assert pod[container].env == {
            "VC_PS_HOSTS": "train-ps-0.train",
            "VC_PS_NUM": "1",
            "VC_MODEL_WORKER_HOSTS": "train-model-worker-0.train,train-model-worker-1.train",
            "VC_MODEL_WORKER_NUM": "2",
        }
        assert pod[container].files["/etc/volcano/ps.host"] == "train-ps-0.train"
        assert pod[container].files["/etc/volcano/model_worker.host"].splitlines() == [
            "train-model-worker-0.train",
            "train-model-worker-1.train",
        ]


def test_a_pod_has_the_host_and_subdomain_under_which_others_find_it():
    pod = the_pod(a_vcjob({"svc": []}, worker=2), "worker", 1).pod

    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("train-worker-1", "train")


def test_host_and_subdomain_of_the_template_stay_and_stand_in_the_lists():
    job = a_vcjob({"svc": []}, master=(2, {"hostname": "boss", "subdomain": "own"}), worker=(1, {"subdomain": "own"}))

    pod = the_pod(job, "master")

    assert (pod.pod["spec"]["hostname"], pod.pod["spec"]["subdomain"]) == ("boss", "own")
    assert pod["main"].env["VC_MASTER_HOSTS"] == "boss.own"
    assert pod["main"].env["VC_MASTER_NUM"] == "1"
    assert pod["main"].env["VC_WORKER_HOSTS"] == "train-worker-0.own"


def test_the_config_map_has_exactly_three_keys_for_each_task_and_follows_the_job():
    config = objects_of(a_vcjob({"svc": None}, ps=0, model_worker=1))["ConfigMap"]

    assert config.resource is CONFIG_MAPS
    assert config.body["metadata"] == {"name": "train-svc"}
    assert config.body["data"] == {
        "ps.host": "",
        "VC_PS_HOSTS": "",
        "VC_PS_NUM": "0",
        "model_worker.host": "train-model-worker-0.train",
        "VC_MODEL_WORKER_HOSTS": "train-model-worker-0.train",
        "VC_MODEL_WORKER_NUM": "1",
    }
    assert (config.follow, config.keep) == (("data",), ())


def test_a_headless_service_has_the_name_of_the_job_and_selects_its_pods():
    service = objects_of(a_vcjob({"svc": []}, worker=1))["Service"]

    assert service.resource is SERVICES
    assert service.body["metadata"] == {"name": "train"}
    assert service.body["spec"] == {"clusterIP": "None", "selector": OF_THE_JOB, "publishNotReadyAddresses": False}
    assert service.follow == ()


def test_only_pods_of_the_job_may_connect():
    policy = objects_of(a_vcjob({"svc": []}, worker=1))["NetworkPolicy"]

    assert policy.resource is NETWORK_POLICIES
    assert policy.body["metadata"] == {"name": "train"}
    assert policy.body["spec"] == {
        "podSelector": {"matchLabels": OF_THE_JOB},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": OF_THE_JOB}}]}],
    }


def test_arguments_publish_unready_pods_admit_everybody_and_leave_variables_out():
    arguments = ["--publish-not-ready-addresses", "--disable-network-policy=true", "--inject-hosts-env=false"]
    job = a_vcjob({"svc": arguments}, worker=1)

    objects = objects_of(job)
    seen = the_pod(job, "worker")["main"]

    assert objects.keys() == {"ConfigMap", "Service"}
    assert objects["Service"].body["spec"]["publishNotReadyAddresses"] is True
    assert seen.env == {}
    assert seen.files["/etc/volcano/VC_WORKER_NUM"] == "1"
    assert build_plugins(job).fixed_at_start == ()


def test_running_pods_keep_the_variables_after_a_change_of_replicas():
    assert build_plugins(a_vcjob({"svc": []}, worker=1)).fixed_at_start == ("VC_*_HOSTS", "VC_*_NUM")


def test_a_variable_that_no_container_could_start_with_is_left_out_and_the_file_named():
    job = a_vcjob({"svc": []}, ps=1, worker=6000)

    seen = the_pod(job, "ps")["main"]
    plugins = build_plugins(job)

    assert seen.env == {"VC_PS_HOSTS": "train-ps-0.train", "VC_PS_NUM": "1", "VC_WORKER_NUM": "6000"}
    assert len(seen.files["/etc/volcano/worker.host"].splitlines()) == 6000
    (warning,) = plugins.warnings
    assert "variable VC_WORKER_HOSTS" in warning
    assert warning.endswith("read /etc/volcano/worker.host")


def test_more_hosts_than_a_config_map_holds_are_a_problem_of_the_job():
    job = a_vcjob({"svc": []}, worker=30_000)

    with pytest.raises(PluginProblem, match=r'^plugin "svc": .* bytes in ConfigMap train-svc, .* fewer replicas'):
        build_plugins(job).objects(job)


def test_a_name_that_no_service_can_have_is_a_problem_of_the_job():
    job = a_vcjob({"svc": []}, "train.v2", worker=1)

    with pytest.raises(PluginProblem, match=r'^plugin "svc": it needs a Service "train.v2"'):
        build_plugins(job).objects(job)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (
            {"volumes": [{"name": "train-svc", "emptyDir": {}}]},
            'plugin "svc": the pod has a volume "train-svc" of its own: give that volume another name',
        ),
        (
            {"containers": [{"name": "main", "volumeMounts": [{"name": "v", "mountPath": "/etc/volcano"}]}]},
            'plugin "svc": container "main" mounts something else at /etc/volcano: mount that at another path',
        ),
    ],
)
def test_what_the_template_has_in_the_same_place_is_a_problem_of_the_job(template, problem):
    job = a_vcjob({"svc": []}, worker=(1, template))
    task = job.spec.tasks[0]

    with pytest.raises(PluginProblem) as raised:
        build_plugins(job).customize({"metadata": {"name": "train-worker-0"}, **task.template}, job, task, 0)

    assert str(raised.value) == problem


def test_objects_are_made_once():
    job = a_vcjob({"svc": []}, worker=100)
    plugins = build_plugins(job)

    assert [id(one) for one in plugins.objects(job)] == [id(one) for one in plugins.objects(job)]


@pytest.mark.parametrize("plugin", ["svc", "ssh", "tensorflow", "mpi"])
@pytest.mark.parametrize("template", [{}, {"subdomain": "s" * 100_000}, {"hostname": "h" * 100_000}])
def test_the_hosts_of_a_job_that_asks_for_200_000_pods_are_never_built(plugin: str, template: dict[str, str]) -> None:
    """Anybody may create such a job; with a subdomain of 100,000 letters, its hosts would take 20 GB."""
    job = a_vcjob({plugin: []}, master=1, worker=(200_000, template))
    pod = {"metadata": {"name": "train-master-0"}, "spec": job.spec.tasks[0].template["spec"]}
    tracemalloc.start()
    try:
        plugins = build_plugins(job)
        with contextlib.suppress(PluginProblem):
            plugins.objects(job)
        with contextlib.suppress(PluginProblem):
            if plugin != "svc":  # it takes part in the creation of pods only once its objects exist
                plugins.customize(pod, job, job.spec.tasks[0], 0)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 4_000_000


@pytest.mark.parametrize("replicas", [0, 1, 9, 10, 11, 100, 1001])
@pytest.mark.parametrize("template", [{}, {"subdomain": "\u00e4"}, {"hostname": "h"}])
def test_the_size_of_a_list_of_addresses_is_known_before_it_is_built(replicas: int, template: dict[str, str]) -> None:
    job = a_vcjob({}, worker=(replicas, template))
    (task,) = job.spec.tasks

    assert size_of_addresses(job, task) == len(",".join(addresses(job, task)).encode())
