"""Child processes end with the run, however the run ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.processes import LeftBehind, ProcessEnded, Processes, StillRunning, living_members
from tests.controlplane.waiting import NotInTime, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
SLEEP = ["sleep", "60"]
DEAF = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"]
RUN_THAT_DIES = """
import os, signal, sys
from tests.controlplane.processes import Processes
processes = Processes()
processes.start("sleeper", ["sleep", "60"])
processes.start("family", ["sh", "-c", "sleep 60 & sleep 60"])
print(processes.folder, *processes.running.values(), flush=True)
os.kill(os.getpid(), getattr(signal, sys.argv[1]))
"""


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGTERM"])
def test_nothing_outlives_a_run_that_is_killed(signal_name: str) -> None:
    died = subprocess.run(
        [sys.executable, "-c", RUN_THAT_DIES, signal_name],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert died.returncode == -getattr(signal, signal_name), died.stderr
    folder, *pids = died.stdout.split()

    wait_until("the processes to be gone", lambda: not any(living_members(int(pid)) for pid in pids), 10, every=0.02)
    wait_until(f"{folder} to be gone", lambda: not Path(folder).exists(), 10, every=0.02)


def test_closing_stops_everything_and_removes_the_folder() -> None:
    processes = Processes()
    processes.start("one", SLEEP)
    processes.start("two", SLEEP)
    pids = list(processes.running.values())
    watchdog = processes.watchdog_pid

    processes.close()

    assert not processes.folder.exists()
    assert [pid for pid in (*pids, watchdog) if living_members(pid)] == []


def test_a_process_that_ignores_the_request_is_killed() -> None:
    processes = Processes()
    processes.start("deaf", DEAF)
    pid = processes.pid("deaf")
    wait_until("the trap", lambda: processes.log("deaf").read_text(), 10, every=0.01)

    processes.stop("deaf", timeout=0.05)

    wait_until("the whole group has ended", lambda: not living_members(pid), 5, every=0.01)
    processes.close()


def test_a_process_that_ended_by_itself_is_reported_with_the_end_of_its_log() -> None:
    processes = Processes()
    processes.start("brief", ["sh", "-c", "echo port taken >&2; exit 3"])

    def complaint() -> str:
        try:
            processes.check_alive("brief")
        except ProcessEnded as ended:
            return str(ended)
        return ""

    said = wait_until("the end of the process", complaint, 10, every=0.01)

    assert "with code 3" in said
    assert "port taken" in said
    processes.close()


def test_a_grandchild_that_keeps_running_is_reported_and_killed() -> None:
    processes = Processes()
    processes.start("parent", ["sh", "-c", "sleep 60 & echo started; exit 0"])
    wait_until("the child", lambda: processes.log("parent").read_text(), 10, every=0.01)
    group = processes.pid("parent")

    with pytest.raises(LeftBehind, match=f"of group {group}"):
        processes.close()

    wait_until("its end", lambda: not living_members(group), 10, every=0.01)


def test_a_signal_is_sent_and_the_end_is_waited_for() -> None:
    processes = Processes()
    processes.start("polite", ["sh", "-c", "trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done"])
    wait_until("the trap", lambda: processes.log("polite").read_text(), 10, every=0.01)

    processes.signal("polite", signal.SIGUSR1)

    assert processes.wait("polite", timeout=10) == 7
    assert processes.running == {}
    processes.close()


def test_waiting_for_a_process_that_keeps_running_fails_with_a_message() -> None:
    processes = Processes()
    processes.start("stays", SLEEP)

    with pytest.raises(StillRunning, match=r"stays still runs after 0\.01 s"):
        processes.wait("stays", timeout=0.01)

    processes.close()


def test_a_name_is_used_by_one_process_at_a_time() -> None:
    processes = Processes()
    processes.start("one", SLEEP)

    with pytest.raises(ValueError, match="one is running already"):
        processes.start("one", SLEEP)

    processes.close()


def test_logs_can_be_kept(capsys: pytest.CaptureFixture[str]) -> None:
    processes = Processes()
    processes.start("talker", ["sh", "-c", "echo hello"])
    wait_until("the log", lambda: processes.log("talker").read_text(), 10, every=0.01)

    processes.close(keep_logs=True)

    kept = Path(capsys.readouterr().err.split()[-1])
    assert (kept / "talker.log").read_text() == "hello\n"
    (kept / "talker.log").unlink()
    kept.rmdir()


def test_a_timeout_reports_the_last_answer() -> None:
    with pytest.raises(NotInTime, match=r"the moon: not within 0.01 s \(last answer 0\)"):
        wait_until("the moon", lambda: 0, 0.01, every=0.001)


def test_a_timeout_names_the_last_tolerated_error() -> None:
    def refuse() -> bool:
        raise ConnectionRefusedError("nobody there")

    with pytest.raises(NotInTime, match="nobody there"):
        wait_until("the server", refuse, 0.01, every=0.001, tolerate=(OSError,))
