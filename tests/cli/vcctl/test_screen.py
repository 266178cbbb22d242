"""What a person sees on a terminal, what completion does in a shell, and logs of several pods."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from volcano_py.cli.vcctl import job_reading, logs
from volcano_py.client.api import Obj
from volcano_py.client.problem import ApiProblem, Problem
from volcano_py.kube.resource import PODS, VCJOBS, Resource

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REPOSITORY = Path(__file__).resolve().parents[3]
JOB: dict[str, Any] = {
    "metadata": {"name": "train", "namespace": "a"},
    "spec": {"tasks": [{"name": "ps"}, {"name": "worker"}]},
    "status": {"state": {"phase": "Running"}},
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def listed(out: io.StringIO) -> str:
    job_reading.list_jobs(call_of("job list", Canned({VCJOBS: [JOB]}), out, NOW))
    return out.getvalue()


def test_phases_have_colours_on_a_terminal_only(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\033[32mRunning\033[0m" in listed(terminal)
    assert "\033" not in listed(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in listed(Terminal())


class WithLogs(Canned):
    """Pods of one job, and what each has written."""

    def __init__(self, texts: Mapping[str, str | None]) -> None:
        pods = [self._pod(name) for name in texts]
        super().__init__({VCJOBS: [JOB], PODS: pods})
        self._texts = texts
        self.asked: list[dict[str, str]] = []

    def _pod(self, name: str) -> dict[str, Any]:
        _, task, index = name.split("-")
        annotations = {"volcano.sh/task-spec": task, "volcano.sh/task-index": index}
        metadata = {"name": name, "namespace": "a", "annotations": annotations}
        return {
            "metadata": metadata,
            "spec": {"containers": [{"name": "main"}], "nodeName": "n"},
            "status": {"phase": "Pending"},
        }

    def list(self, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        assert query in ({}, {"labelSelector": "volcano.sh/job-name=train"})
        return super().list(kind, namespace, **query)

    def text(self, path: str, query: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Iterator[str]:
        self.asked.append(dict(query or {}))
        text = self._texts[path.split("/")[-2]]
        if text is None:
            raise ApiProblem(400, "BadRequest", "container is waiting to start")
        yield from text.splitlines(keepends=True)


TEXTS = {"train-worker-1": "w1\nend", "train-worker-0": "w0\n", "train-ps-0": "p0\n"}


def logged(line: str, texts: Mapping[str, str | None] = TEXTS) -> tuple[str, list[dict[str, str]]]:
    api, out = WithLogs(texts), io.StringIO()
    assert logs.print_logs(call_of(f"job logs train -n a {line}", api, out, NOW)) == 0
    return out.getvalue(), api.asked


def test_logs_are_in_the_order_of_the_indices_also_if_one_is_no_number() -> None:
    texts = {"train-ps-mine": "x\n", "train-ps-10": "b\n", "train-ps-2": "a\n"}
    assert logged("", texts)[0].splitlines() == ["[train-ps-2] a", "[train-ps-10] b", "[train-ps-mine] x"]


def test_logs_of_a_job_name_the_pod_in_every_line() -> None:
    assert logged("")[0] == ("[train-ps-0] p0\n[train-worker-0] w0\n[train-worker-1] w1\n[train-worker-1] end\n")


def test_logs_of_one_pod_stand_alone() -> None:
    text, asked = logged("--task worker --index 1 --tail 5 -c side --previous")

    assert text == "w1\nend\n"
    assert asked == [{"container": "side", "previous": "true", "tailLines": "5"}]


def test_logs_of_several_pods_are_followed_together() -> None:
    assert logged("-f --task ps")[1] == [{"container": "main", "follow": "true"}]

    text, asked = logged("-f --tail 3")

    assert sorted(text.splitlines()) == [
        *("[train-ps-0] p0", "[train-worker-0] w0", "[train-worker-1] end", "[train-worker-1] w1")
    ]
    assert asked == [{"container": "main", "follow": "true", "tailLines": "3"}] * 3


def test_more_pods_than_connections_are_not_followed() -> None:
    with pytest.raises(Problem, match="--follow takes at most 20 pods, and these are 21; add --task and --index"):
        logged("-f", {f"train-ps-{number}": "" for number in range(21)})


def test_a_pod_that_cannot_be_followed_does_not_stop_the_others() -> None:
    api, out = WithLogs({**TEXTS, "train-ps-0": None}), io.StringIO()

    with pytest.raises(Problem, match=r"pod a/train-ps-0 \(Pending\): container is waiting to start"):
        logs.print_logs(call_of("job logs train -n a -f", api, out, NOW))

    assert len(out.getvalue().splitlines()) == 3


@pytest.mark.parametrize(
    ("line", "texts", "sentence"),
    [
        ("--task nobody", TEXTS, "job a/train has no task 'nobody'; its tasks: ps, worker"),
        ("--task worker --index 7", TEXTS, "has no pod with that task and index; it has ps/0, worker/0, worker/1"),
        ("", {}, 'job a/train has no pods now; "vcctl job why train -n a" says why'),
        ("--task ps", {"train-ps-0": None}, r"pod a/train-ps-0 \(Pending\): container is waiting to start; \"kubectl"),
    ],
)
def test_logs_that_cannot_be_printed_say_why(line: str, texts: Mapping[str, str | None], sentence: str) -> None:
    with pytest.raises(Problem, match=sentence):
        logged(line, texts)


def test_a_task_without_a_name_is_called_by_its_place() -> None:
    api = WithLogs({})
    api._lists = {**api._lists, VCJOBS: [{**JOB, "spec": {"tasks": [{"name": "ps"}, {}]}}]}

    with pytest.raises(Problem, match="has no task 'x'; its tasks: ps, default1"):
        logs.print_logs(call_of("job logs train -n a --task x", api, io.StringIO(), NOW))


def test_a_pod_without_a_node_is_not_an_empty_log() -> None:
    api = WithLogs(TEXTS)
    for one in api.list(PODS)[1:]:
        del one["spec"]["nodeName"]
    out = io.StringIO()

    with pytest.raises(Problem, match=r"it has no node yet and has written nothing; \"vcctl job why train -n a\" says"):
        logs.print_logs(call_of("job logs train -n a", api, out, NOW))

    assert out.getvalue() == "[train-worker-1] w1\n[train-worker-1] end\n"
    assert len(api.asked) == 1


def test_the_same_refusal_of_many_pods_is_said_once() -> None:
    with pytest.raises(Problem) as problem:
        logged("", dict.fromkeys(TEXTS))
    assert str(problem.value).count("container is waiting to start") == 1
    assert "and 2 more pods" in str(problem.value)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("vcctl job w", ["why", "wait"]),
        ("vcctl job list -o js", ["json"]),
        ("vcctl job list --output = js", ["json"]),
        ("vcctl job list --output =", ["json", "yaml", "wide", "name"]),
        ("vcctl job list --namespace = a --output = js", ["json"]),
        ("vcctl queue operate --wei", ["--weight"]),
    ],
)
def test_completion_in_bash(line: str, offered: list[str], tmp_path: Path) -> None:
    vcctl = tmp_path / "vcctl"
    code = "import sys; from volcano_py.cli.vcctl import main; sys.argv[0] = 'vcctl'; sys.exit(main())"
    vcctl.write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -c "{code}" "$@"\n')
    vcctl.chmod(0o755)
    script = f"""
        PATH={tmp_path}:$PATH
        source <(vcctl completion bash)
        COMP_WORDS=({line})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _vcctl_complete
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=30)

    assert sorted(ran.stdout.split()) == sorted(offered), ran.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_for_other_shells_have_their_syntax(shell: str) -> None:
    code = "import sys; from volcano_py.cli.vcctl import main; sys.exit(main())"
    made = subprocess.run(
        [sys.executable, "-c", code, "completion", shell],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    assert "__complete" in made
    if (binary := shutil.which(shell)) is None:
        pytest.skip(f"needs {shell}")
    checked = subprocess.run([binary, "-n"], input=made, capture_output=True, text=True, check=False, timeout=30)
    assert (checked.returncode, checked.stderr) == (0, "")


class Changing(Canned):
    """A watch that is too old once, shows a change, and breaks off."""

    def __init__(self) -> None:
        super().__init__({VCJOBS: [JOB]})
        self.watched = 0

    def watch(self, kind: Resource, namespace: str = "", **query: str) -> Iterator[tuple[str, Obj]]:
        self.watched += 1
        if self.watched == 1:
            raise ApiProblem(410, "Expired", "too old")
        yield "MODIFIED", {**JOB, "status": {"state": {"phase": "Completed"}}}
        yield "ADDED", {**JOB, "metadata": {"name": "other"}}
        raise Problem("broken off")


@pytest.mark.parametrize(
    ("form", "seen"),
    [
        ("", ["Name", "train", "train", "train"]),
        ("-o name", ["job.batch.volcano.sh/train"] * 3),
    ],
)
def test_a_watch_prints_changes_of_what_was_asked_for_and_outlives_an_old_version(form: str, seen: list[str]) -> None:
    out = io.StringIO()

    with pytest.raises(Problem, match="broken off"):
        job_reading.list_jobs(call_of(f"job list --selector tra --watch {form}", Changing(), out, NOW))

    assert [line.split()[0] for line in out.getvalue().splitlines()] == seen
