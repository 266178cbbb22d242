"""How commands end that are interrupted, or whose output nobody takes any more: without a traceback."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.vcctl.running import PROGRAM, Cluster, begun, command, environment
from volcano_py.apiserver import ApiServer
from volcano_py.kube.resource import VCJOBS


@pytest.mark.parametrize("line", ["job list -n ends -w", "queue list -w", "pod list -n ends -w", "jobflow list -A -w"])
def test_ctrl_c_ends_a_watch_at_once(cluster: Cluster, line: str) -> None:
    cluster.namespace("ends")
    with begun(*line.split()) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Name")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, "")
    assert "Traceback" not in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_wait_at_once(cluster: Cluster, api_server: ApiServer, number: signal.Signals) -> None:
    space = cluster.namespace("ends")
    cluster.job(f"waits-{number}", space, "Pending")
    asked = api_server.requests.count
    before, deadline = asked(resource=VCJOBS.label), time.monotonic() + 60
    with begun("job", "wait", f"waits-{number}", "-n", space, "--for=phase=Running", "--timeout=100s") as process:
        while asked(resource=VCJOBS.label) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (128 + number, "", "")


def shell(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    vcctl = f'vcctl() {{ "{sys.executable}" -c "{PROGRAM}" "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", vcctl + script],
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_reader_that_has_seen_enough_is_no_failure(cluster: Cluster) -> None:
    space = cluster.namespace("many-lines")
    for number in range(300):
        cluster.job(f"a-job-with-a-long-name-so-that-the-pipe-is-full-soon-{number}", space)

    ran = shell(f"vcctl job list -n {space} | head -1; echo ${{PIPESTATUS[0]}}")

    assert ran.stdout.splitlines()[0].startswith("Name")
    assert ran.stdout.splitlines()[1] == "0"
    assert ran.stderr == ""


def test_a_failure_that_nobody_reads_is_still_a_failure(cluster: Cluster) -> None:
    ran = shell("(sleep 1; vcctl queue get gone; echo $? >&2) | true")

    assert (ran.stdout, ran.stderr) == ("", "255\n")


@pytest.mark.parametrize("form", ["json", "yaml", "name"])
@pytest.mark.parametrize("line", ["queue get gone", "jobtemplate list -k /gone"])
def test_a_failure_is_not_among_the_objects_that_a_program_reads(cluster: Cluster, line: str, form: str) -> None:
    ran = shell(f"vcctl {line} -o {form} | cat; echo ${{PIPESTATUS[0]}}; vcctl {line} -o wide 2>/dev/null")

    assert ran.stderr.startswith("Failed to ")
    code, plain = ran.stdout.splitlines()
    assert code == "255"
    assert plain == ran.stderr.strip(), "people, and scripts for Volcano's vcctl, read standard output"


@pytest.mark.parametrize(
    ("line", "begin"),
    [
        ("job wait gone --for=delete -s ftp://x", "Failed to wait for job: "),
        ("job logs gone -s ftp://x", "Failed to read logs of job: "),
        ("job why gone -s ftp://x", "Failed to explain job: "),
    ],
)
def test_what_fails_is_told_in_words(line: str, begin: str) -> None:
    assert shell(f"vcctl {line}").stdout.startswith(begin)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(cluster: Cluster) -> None:
    ran = shell("vcctl version > /dev/full; echo $?")

    assert ran.stdout == "255\n"
    assert ran.stderr == "Failed to write the output: No space left on device\n"


def test_a_closed_output_is_no_traceback(cluster: Cluster) -> None:
    ran = shell("vcctl queue list >&-; echo $?; vcctl queue get gone >&-; echo $?")

    assert (ran.stdout, ran.stderr) == ("0\n255\n", "")


def test_a_terminal_that_knows_only_ascii_gets_question_marks(cluster: Cluster) -> None:
    space = cluster.namespace("ascii")
    cluster.job("a-name-that-does-not-fit-on-a-terminal-of-forty-columns", space)
    ours, theirs = pty.openpty()
    more = {"COLUMNS": "40", "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}

    ran = subprocess.run(
        command("job", "list", "-n", space), env={**environment(), **more}, stdout=theirs, timeout=60, check=False
    )

    os.close(theirs)
    text = os.read(ours, 1000).decode()
    os.close(ours)
    assert ran.returncode == 0
    assert text.splitlines()[1].startswith("a-nam?umns ")


def test_a_terminal_that_is_gone_ends_a_watch(cluster: Cluster) -> None:
    space = cluster.namespace("hangs-up")
    ours, theirs = pty.openpty()
    with begun("job", "list", "-n", space, "-w", stdout=theirs) as process:
        os.close(theirs)
        assert os.read(ours, 100).startswith(b"Name")
        os.close(ours)
        cluster.job("train", space)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 255
    assert err == "Failed to write the output: Input/output error\n"
