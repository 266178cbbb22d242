"""Plugin pytorch, and its init container as a shell runs it."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.controllers.job.plugins.seen import SeenPod, a_vcjob, the_pod
from volcano_py.controllers.job.plugins.registry import build_plugins

NC = """\
#!{bash}
[ "$1 $2 $3" = "-z -w 2" ] && {timeout} 2 {bash} -c ": <>/dev/tcp/$4/$5"
"""
"""A stand-in for nc of the default image, which has no bash."""
WAIT = "--wait-master-enabled"


@pytest.mark.parametrize(
    ("task", "index", "rank"), [("master", 0, "0"), ("worker", 0, "1"), ("worker", 4, "5"), ("board", 0, None)]
)
def test_a_container_knows_the_master_the_number_of_processes_and_its_rank(task, index, rank):
    seen = the_pod(a_vcjob({"pytorch": []}, master=1, worker=5, board=2), task, index)["main"]

    expected = {"MASTER_ADDR": "train-master-0.train", "MASTER_PORT": "23456", "WORLD_SIZE": "6"}
    assert seen.env == expected | ({} if rank is None else {"RANK": rank})
    assert seen.ports == {"pytorchjob-port": 23456}


def test_names_and_port_come_from_arguments_and_the_host_from_the_template():
    job = a_vcjob(
        {"pytorch": ["--master=boss", "--worker=hand", "--port=80"]},
        boss=(1, {"hostname": "b", "subdomain": "s", "initContainers": [{"name": "fetch"}]}),
        hand=2,
        worker=7,
    )

    pod = the_pod(job, "boss")

    assert pod["main"].env == {"MASTER_ADDR": "b.s", "MASTER_PORT": "80", "WORLD_SIZE": "3", "RANK": "0"}
    assert (pod["fetch"].env, pod["fetch"].ports) == ({}, {})


def test_nothing_happens_without_a_master_and_the_job_is_told():
    job = a_vcjob({"pytorch": [WAIT]}, worker=2)

    pod = the_pod(job, "worker")

    assert pod.containers.keys() == {"main"}
    assert (pod["main"].env, pod["main"].ports) == ({}, {})
    assert build_plugins(job).warnings == (
        'plugin "pytorch": no task is named "master", so the pods get no variables: set --master',
    )


def test_several_masters_share_a_rank_and_the_job_is_told():
    job = a_vcjob({"pytorch": []}, master=2, worker=1)

    assert [the_pod(job, "master", index)["main"].env["RANK"] for index in (0, 1)] == ["0", "0"]
    assert build_plugins(job).warnings == (
        'plugin "pytorch": task "master" has 2 replicas, and all of them get RANK 0',
    )


def test_running_pods_keep_the_number_of_processes_after_a_change_of_replicas():
    job = a_vcjob({"pytorch": [], "env": []}, master=1, worker=1)

    assert build_plugins(job).fixed_at_start == ("WORLD_SIZE",)


def waiting_pod(port: int, limit_s: int = 0, task: str = "worker") -> SeenPod:
    arguments = [WAIT, f"--wait-master-timeout={limit_s}", f"--port={port}", "--wait-master-image=shell:1"]
    template = {"initContainers": [{"name": "fetch", "image": "fetch"}]}
    master = (1, {"hostname": "127.0.0", "subdomain": "1"})
    return the_pod(a_vcjob({"pytorch": arguments}, master=master, worker=(1, template)), task)


def test_only_workers_wait_and_only_if_asked_to():
    waiting = [container["name"] for container in waiting_pod(80).pod["spec"]["initContainers"]]
    unasked = the_pod(a_vcjob({"pytorch": []}, master=1, worker=1), "worker")

    assert waiting == ["fetch", "wait-for-master"]
    assert waiting_pod(80).pod["spec"]["initContainers"][1]["image"] == "shell:1"
    assert waiting_pod(80, task="master").containers.keys() == {"main"}
    assert unasked.containers.keys() == {"main"}


@pytest.fixture
def listening() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.fixture
def silent() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


def wait(probe: str, pod: SeenPod, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the init container in an image that has nc or bash, but not both."""
    tools = {name: str(shutil.which(name)) for name in ("sh", "date", "sleep", "timeout", "bash")}
    if probe == "nc":
        (folder / "nc").write_text(NC.format(**tools))
        (folder / "nc").chmod(0o755)
    for name in {*tools} - ({"bash"} if probe == "nc" else set()):
        (folder / name).symlink_to(tools[name])
    shell, *arguments = pod["wait-for-master"].command
    env = {**pod["wait-for-master"].env, "PATH": str(folder)}
    return subprocess.run([tools[shell], *arguments], env=env, text=True, capture_output=True, timeout=20, check=False)


@pytest.mark.parametrize("probe", ["nc", "bash"])
def test_the_init_container_ends_as_soon_as_the_master_listens(probe: str, listening: int, tmp_path: Path):
    assert wait(probe, waiting_pod(listening, 300), tmp_path).returncode == 0


@pytest.mark.parametrize("probe", ["nc", "bash"])
def test_the_init_container_fails_after_its_limit(probe: str, silent: int, tmp_path: Path):
    done = wait(probe, waiting_pod(silent), tmp_path)

    assert done.returncode == 1
    assert done.stderr == f"the master 127.0.0.1:{silent} does not listen after 0 s\n"
