"""`vcctl job logs` through a real API server, which asks the kubelet of each pod's node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.job_cluster import JobCluster
from tests.e2e.log_kubelet import LogKubelet
from tests.e2e.shell import Shell
from tests.e2e.vcjobs import task, template, vcjob


@pytest.fixture(scope="module")
def kubelet(job_cluster: JobCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogKubelet]:
    """The kubelet of two nodes of their own; its selector is `selector`."""
    with LogKubelet(tmp_path_factory.mktemp("kubelet")) as kubelet:
        yield kubelet


@pytest.fixture(scope="module")
def selector(job_cluster: JobCluster, kubelet: LogKubelet) -> dict[str, str]:
    """The selector of nodes that have logs."""
    names, selector = job_cluster.own_nodes(2)
    for name in names:
        kubelet.serve_logs_of(job_cluster.plane, name)
    return selector


@pytest.fixture
def shell(job_cluster: JobCluster) -> Shell:
    return Shell(job_cluster)


def running(shell: Shell, name: str, folder: Path, selector: dict[str, str], phase: str = "Running") -> str:
    """Run a job of two tasks; return the words of its logs command."""
    pods = template(selector=selector)
    made = vcjob(name, [task("ps", 1, pods), task("worker", 2, pods)])
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(made))
    shell.vcctl(f"job run -f {path} -n {shell.namespace}")
    shell.vcctl(f"job wait {name} -n {shell.namespace} --for=phase={phase} --timeout=60s")
    return f"job logs {name} -n {shell.namespace}"


def test_logs_of_one_pod_of_a_task_and_of_the_job(
    shell: Shell, kubelet: LogKubelet, selector: dict[str, str], tmp_path: Path
) -> None:
    logs = running(shell, "written", tmp_path, selector)
    for pod in ("written-ps-0", "written-worker-0", "written-worker-1"):
        kubelet.write(pod, f"first of {pod}", "second", "Ω with more than one byte")

    assert shell.vcctl(f"{logs} --task ps") == "first of written-ps-0\nsecond\nΩ with more than one byte\n"
    assert shell.vcctl(f"{logs} --task worker --tail 2") == (
        "[written-worker-0] second\n[written-worker-0] Ω with more than one byte\n"
        "[written-worker-1] second\n[written-worker-1] Ω with more than one byte\n"
    )
    assert shell.vcctl(f"{logs} --task worker --index 1 --tail 1 -c main") == "Ω with more than one byte\n"
    assert shell.vcctl(logs).count("\n") == 9
    asked = kubelet.asked[-4]
    assert (asked.namespace, asked.container, asked.query) == (shell.namespace, "main", {"tailLines": "1"})
    shell.vcctl(f"{logs} --task ps --previous")
    assert kubelet.asked[-1].query == {"previous": "true"}

    assert "container nobody is not valid for pod written-ps-0" in shell.refuses(
        "vcctl", *logs.split(), "--task", "ps", "-c", "nobody"
    )
    assert "has no task 'nobody'; its tasks: ps, worker" in shell.refuses("vcctl", *logs.split(), "--task", "nobody")
    assert "it has ps/0, worker/0, worker/1" in shell.refuses("vcctl", *logs.split(), "--index", "7")


def test_logs_are_followed_until_the_pods_end(
    shell: Shell, kubelet: LogKubelet, selector: dict[str, str], tmp_path: Path
) -> None:
    logs = running(shell, "followed", tmp_path, selector)
    workers = ("followed-worker-0", "followed-worker-1")
    for pod in (*workers, "followed-ps-0"):
        kubelet.write(pod, "old", "begin")

    with (
        shell.begin("vcctl", *logs.split(), "--task", "ps", "-f", "--tail", "1") as one,
        shell.begin("vcctl", *logs.split(), "--task", "worker", "-f") as both,
    ):
        assert one.stdout is not None
        assert both.stdout is not None
        assert one.stdout.readline() == "begin\n"
        lines = sorted(both.stdout.readline() for _ in range(4))
        assert lines == [f"[{pod}] {word}\n" for pod in workers for word in ("begin", "old")]
        kubelet.write("followed-worker-1", "later")
        assert both.stdout.readline() == "[followed-worker-1] later\n"
        kubelet.write("followed-ps-0", "later")
        assert one.stdout.readline() == "later\n"

        kubelet.end("followed-ps-0", workers[0])
        assert one.wait(20) == 0
        time.sleep(0.3)
        assert both.poll() is None, "one of its pods goes on"
        kubelet.end(workers[1])
        assert both.wait(20) == 0
        assert (one.stdout.read(), both.stdout.read()) == ("", "")


def test_a_pod_that_has_no_log_yet_says_why_and_the_others_are_printed(
    shell: Shell, kubelet: LogKubelet, selector: dict[str, str], tmp_path: Path
) -> None:
    logs = running(shell, "starting", tmp_path, selector)
    kubelet.write("starting-ps-0", "I run")
    kubelet.write("starting-worker-1", "I run, too")

    ran = shell.run("vcctl", *logs.split())

    assert ran.returncode == 255
    *lines, last = ran.stdout.splitlines()
    assert lines == ["[starting-ps-0] I run", "[starting-worker-1] I run, too"]
    assert last == (
        f"Failed to print logs of job: pod {shell.namespace}/starting-worker-0 (Running): "
        'container "main" in pod "starting-worker-0" is waiting to start: ContainerCreating; '
        f'"kubectl -n {shell.namespace} describe pod starting-worker-0" says more'
    )


def test_pods_without_a_node_and_nodes_without_a_kubelet_are_named(
    shell: Shell, kubelet: LogKubelet, job_cluster: JobCluster, tmp_path: Path
) -> None:
    nowhere = template(selector={"e2e.volcano-py/nowhere": "true"})
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(vcjob("nowhere", [task("w", 2, nowhere)])))
    shell.vcctl(f"job run -f {tmp_path / 'job.yaml'} -n {shell.namespace}")
    pods = f"pod list -j nowhere -n {shell.namespace}"
    for _ in range(100):
        if shell.vcctl(pods).count("nowhere-w-") == 2:
            break
        time.sleep(0.1)

    told = shell.refuses("vcctl", "job", "logs", "nowhere", "-n", shell.namespace)
    assert f"pod {shell.namespace}/nowhere-w-0 (Pending): it has no node yet and has written nothing; " in told
    assert told.endswith(f'"vcctl job why nowhere -n {shell.namespace}" says why (and 1 more pod)\n')

    names, selector = job_cluster.own_nodes()
    logs = running(shell, "silent", tmp_path, selector)
    with LogKubelet(tmp_path) as gone:
        gone.serve_logs_of(job_cluster.plane, names[0])
    told = shell.refuses("vcctl", *logs.split(), "--task", "ps")
    assert "connection refused" in told
    assert f"pod {shell.namespace}/silent-ps-0 (Running): " in told
