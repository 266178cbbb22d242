"""Which plugins a job has, in which order, and what is wrong with them."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from tests.controllers.job.plugins.seen import KEYS, a_vcjob, the_pod
from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.plugins import registry
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject, PluginProblem
from volcano_py.controllers.job.plugins.registry import BUILT_IN, build_plugins, load_table

ALL = {"hcclrank": [], "mpi": [], "pytorch": [], "env": [], "ssh": [], "tensorflow": [], "svc": []}


class Tracing:
    """A plugin of somebody else."""

    needs_key_pair = False
    fixed_at_start = ("TRACE_HOSTS",)

    def __init__(self, arguments: Sequence[str]) -> None:
        if "--broken" in arguments:
            raise ValueError("no such thing")

    def warnings(self, job: Job) -> Sequence[str]:
        return ("look out",)

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        raise KeyError("objects")

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        if index:
            raise PluginProblem("one pod is enough")
        pod["spec"] = {**pod["spec"], "nodeName": "traced"}


def test_plugins_act_in_a_fixed_order_whatever_the_order_of_their_names():
    assert list(BUILT_IN) == ["env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank"]

    plugins = build_plugins(a_vcjob(ALL, master=1, worker=1))

    assert [name for name, _ in plugins.named] == ["env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "hcclrank"]
    assert (plugins.problems, plugins.warnings) == ((), ())


def test_variables_and_volumes_of_all_plugins_stand_in_one_order():
    pod = the_pod(a_vcjob(ALL, master=1, worker=1), "master")

    assert list(pod["main"].env) == [
        *("VK_TASK_INDEX", "VC_TASK_INDEX"),
        *("VC_MASTER_HOSTS", "VC_MASTER_NUM", "VC_WORKER_HOSTS", "VC_WORKER_NUM"),
        "TF_CONFIG",
        *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"),
        "MPI_HOST",
    ]
    assert [volume["name"] for volume in pod.pod["spec"]["volumes"]] == ["train-svc", "train-ssh"]
    assert pod["main"].ports == {"pytorchjob-port": 23456, "mpijob-port": 22}


def test_a_job_without_plugins_has_nothing():
    job = a_vcjob({}, worker=1)
    plugins = build_plugins(job)

    assert plugins.objects(job) == []
    assert not plugins.needs_key_pair
    assert the_pod(job, "worker").pod["spec"] == job.spec.tasks[0].template["spec"]


@pytest.mark.parametrize(("names", "needed"), [({"svc": []}, False), ({"svc": [], "ssh": []}, True)])
def test_a_key_pair_is_needed_for_ssh_alone(names, needed):
    job = a_vcjob(names, worker=1)
    plugins = build_plugins(job)

    assert plugins.needs_key_pair is needed
    assert [one.body["kind"] for one in plugins.objects(job, KEYS)][3:] == (["Secret"] if needed else [])


def test_an_unknown_plugin_is_a_problem_of_the_job_with_the_way_out():
    plugins = build_plugins(a_vcjob({"svc": [], "trace": []}, worker=1))

    (problem,) = plugins.problems
    assert problem.startswith('there is no plugin "trace": create the job with others (env, svc, ssh, ')
    assert "entry point volcano_py.job_plugins" in problem
    assert [name for name, _ in plugins.named] == ["svc"]


def test_an_unknown_argument_is_a_warning_that_names_the_plugin():
    plugins = build_plugins(a_vcjob({"env": ["--a"], "svc": ["--inject-hosts-env=maybe"]}, worker=1))

    assert plugins.problems == ()
    assert plugins.warnings == (
        'plugin "env": unknown argument --a; there are none',
        'plugin "svc": argument --inject-hosts-env cannot have the value "maybe": true is used',
    )


def test_a_plugin_of_a_package_acts_after_the_built_in_ones(monkeypatch):
    entries = [
        EntryPoint("trace", f"{__name__}:Tracing", "volcano_py.job_plugins"),
        EntryPoint("absent", f"{__name__}:Absent", "volcano_py.job_plugins"),
        EntryPoint("svc", f"{__name__}:Tracing", "volcano_py.job_plugins"),
        EntryPoint("text", f"{__name__}:ALL", "volcano_py.job_plugins"),
        EntryPoint("trace", f"{__name__}:Tracing.__init__", "volcano_py.job_plugins"),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries if group == "volcano_py.job_plugins" else [])

    table = load_table()

    assert list(table.factories) == [*BUILT_IN, "trace"]
    assert [problem.partition(" = ")[2].partition(": ")[2].partition(":")[0] for problem in table.problems] == [
        "AttributeError",
        '"svc" is the name of a built-in plugin',
        "it is not a class or function that takes the arguments of the plugin",
        'another package has a plugin "trace"',
    ]


def test_a_plugin_of_a_package_that_fails_is_a_problem_of_the_job_and_of_no_other():
    factories = {**BUILT_IN, "trace": Tracing}
    job = a_vcjob({"trace": [], "env": []}, worker=2)
    task = job.spec.tasks[0]
    plugins = build_plugins(job, factories)
    pod = {"metadata": {"name": "train-worker-0"}, **task.template}

    plugins.customize(pod, job, task, 0)

    assert pod["spec"]["nodeName"] == "traced"
    assert plugins.warnings == ('plugin "trace": look out',)
    assert plugins.fixed_at_start == ("TRACE_HOSTS",)
    with pytest.raises(PluginProblem, match=r"""^plugin "trace" failed: KeyError: 'objects'$"""):
        plugins.objects(job)
    with pytest.raises(PluginProblem, match=r'^plugin "trace": one pod is enough$'):
        plugins.customize({"metadata": {"name": "train-worker-1"}, **task.template}, job, task, 1)
    broken = build_plugins(a_vcjob({"trace": ["--broken"]}, worker=2), factories)
    assert (broken.named, broken.problems) == ((), ('plugin "trace" failed: ValueError: no such thing',))
