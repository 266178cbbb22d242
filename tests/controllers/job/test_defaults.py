"""The defaults of a job, as Volcano's webhook sets them."""

from typing import Any

import msgspec
import pytest

from tests.controllers.job.builders import a_job_task, a_vcjob
from volcano_py.api.batch import Task
from volcano_py.api.job_defaults import least_of, with_defaults


def test_everything_that_is_absent_gets_its_default() -> None:
    spec = with_defaults(a_vcjob({"replicas": 3}, {"name": "ps", "replicas": 1})).spec

    assert (spec.queue, spec.scheduler_name, spec.max_retry, spec.min_available) == ("default", "volcano", 3, 4)
    assert [(task.name, task.min_available, task.max_retry) for task in spec.tasks] == [
        ("default0", 3, 3),
        ("ps", 1, 3),
    ]


def test_scheduler_and_queue_of_this_installation_are_used() -> None:
    spec = with_defaults(a_vcjob(), "mine", "team").spec

    assert (spec.scheduler_name, spec.queue) == ("mine", "team")


def test_what_is_written_stays() -> None:
    task = a_job_task("w", 4, minAvailable=0, maxRetry=-1)
    spec = with_defaults(a_vcjob(task, queue="q", schedulerName="s", maxRetry=7, minAvailable=2)).spec

    assert (spec.queue, spec.scheduler_name, spec.max_retry, spec.min_available) == ("q", "s", 7, 2)
    assert (spec.tasks[0].min_available, spec.tasks[0].max_retry) == (0, -1)


def test_an_explicit_zero_counts_as_absent_for_a_job_but_not_for_the_minimum_of_a_task() -> None:
    spec = with_defaults(
        a_vcjob(a_job_task("a", 4, minAvailable=0), a_job_task("b", 2), minAvailable=0, maxRetry=0)
    ).spec

    assert (spec.min_available, spec.max_retry) == (2, 3)


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        pytest.param({"replicas": 6}, 6, id="all-replicas"),
        pytest.param({"replicas": 6, "minAvailable": 2}, 2, id="written"),
        pytest.param(
            {"replicas": 6, "partitionPolicy": {"partitionSize": 3, "totalPartitions": 2, "minPartitions": 1}},
            3,
            id="least-partitions",
        ),
        pytest.param(
            {"replicas": 6, "partitionPolicy": {"partitionSize": 3, "totalPartitions": 2}}, 6, id="all-partitions"
        ),
        pytest.param(
            {"replicas": 6, "minAvailable": 5, "partitionPolicy": {"partitionSize": 3, "minPartitions": 1}},
            5,
            id="written-beats-partitions",
        ),
    ],
)
def test_the_minimum_of_a_task_is_written_or_follows_from_its_partitions_or_is_all_of_it(
    fields: dict[str, Any], least: int
) -> None:
    assert least_of(msgspec.convert(fields, Task)) == least


@pytest.mark.parametrize(
    ("plugins", "names"),
    [
        ({"mpi": []}, {"mpi", "svc", "ssh"}),
        ({"pytorch": []}, {"pytorch", "svc"}),
        ({"tensorflow": []}, {"tensorflow", "svc"}),
        ({"ray": []}, {"ray", "svc"}),
        ({"env": []}, {"env"}),
    ],
)
def test_a_plugin_brings_the_plugins_that_it_needs(plugins: dict[str, Any], names: set[str]) -> None:
    assert set(with_defaults(a_vcjob(plugins=plugins)).spec.plugins) == names


def test_arguments_of_a_plugin_that_another_one_needs_stay() -> None:
    plugins = with_defaults(a_vcjob(plugins={"mpi": [], "svc": ["--disable-network-policy=true"]})).spec.plugins

    assert plugins["svc"] == ["--disable-network-policy=true"]


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "None"}, "None"),
        ({"containers": []}, None),
    ],
)
def test_pods_in_the_network_of_their_node_find_services(spec: dict[str, Any], policy: str | None) -> None:
    task = with_defaults(a_vcjob(a_job_task(template={"spec": spec}))).spec.tasks[0]

    assert task.template["spec"].get("dnsPolicy") == policy


def test_defaults_of_a_job_with_defaults_are_itself() -> None:
    job = with_defaults(a_vcjob(a_job_task(template={"spec": {"hostNetwork": True}}), plugins={"mpi": []}))

    assert with_defaults(job) == job


def test_the_job_of_the_user_is_not_changed() -> None:
    job = a_vcjob(a_job_task(template={"spec": {"hostNetwork": True}}), plugins={"mpi": []})
    before = msgspec.json.encode(job)

    with_defaults(job)

    assert msgspec.json.encode(job) == before
