"""Child processes of a test run: each has a log file, all are stopped in order, and none is left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

WATCHDOG = Path(__file__).with_name("watchdog.py")
LAST_MOMENT_S = 0.5
PROC = Path("/proc")
KEEP_LOGS = "VOLCANO_PY_KEEP_LOGS"


class ProcessEnded(Exception):
    """A process that should be running has ended; the message carries the end of its log."""


class StillRunning(Exception):
    """A process that should have ended has not; the message carries the end of its log."""


class LeftBehind(Exception):
    """A process or folder of the run still exists after the run was closed."""


class Processes:
    """The processes of one run and the folder with their data and logs.

    Each process leads a session of its own: Ctrl-C reaches only the test run, which then stops them in order. If the
    run dies, a watchdog process kills them and removes the folder.
    """

    def __init__(self, prefix: str = "volcano-py-") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=prefix))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._groups: list[int] = []
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", str(WATCHDOG), str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def start(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
        """Start a process; its output is appended to `log(name)`."""
        if name in self._running:
            raise ValueError(f"{name} is running already, as process {self._running[name].pid}")
        with self.log(name).open("ab") as output:
            process = subprocess.Popen(
                [str(argument) for argument in argv],
                cwd=self.folder,
                env=None if env is None else {**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._tell_watchdog(f"+{process.pid}")
        self._running[name] = process
        self._groups.append(process.pid)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a running process and return at once; call `wait` or `stop` afterwards."""
        self._running[name].send_signal(number)

    def wait(self, name: str, timeout: float) -> int:
        """Wait until a process has ended by itself and return its exit code; raise if that takes too long."""
        process = self._running[name]
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise StillRunning(
                f"{name} still runs after {timeout:g} s; the end of {self.log(name)}:\n{self.log_tail(name)}"
            ) from None
        self._forget(name)
        return code

    def stop(self, name: str, timeout: float = 20.0) -> None:
        """Ask a process to end, wait until it has, and kill it if it takes longer than `timeout` seconds."""
        process = self._running.get(name)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._kill(process)
        self._forget(name)

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL, and wait until it is gone."""
        self._kill(self._running[name])
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._tell_watchdog(f"-{self._running.pop(name).pid}")

    def stop_all(self, order: Sequence[str] = (), timeout: float = 20.0) -> None:
        """Stop every process: those in `order` one after the other, the rest before them."""
        for name in (*(n for n in tuple(self._running) if n not in order), *order):
            self.stop(name, timeout)

    def pid(self, name: str) -> int:
        """Return the process id of a running process."""
        return self._running[name].pid

    @property
    def watchdog_pid(self) -> int:
        """The process id of the watchdog."""
        return self._watchdog.pid

    @property
    def running(self) -> dict[str, int]:
        """The process ids of the running processes, by name."""
        return {name: process.pid for name, process in self._running.items()}

    def check_alive(self, name: str) -> None:
        """Raise, with the end of its log, if a process has ended by itself."""
        process = self._running.get(name)
        code = None if process is None else process.poll()
        if process is not None and code is None:
            return
        state = "was stopped" if process is None else f"ended by itself with code {code}"
        raise ProcessEnded(f"{name} {state}; the end of {self.log(name)}:\n{self.log_tail(name)}")

    def log(self, name: str) -> Path:
        """Return the log file of a process."""
        return self.folder / f"{name}.log"

    def logs(self) -> dict[str, Path]:
        """Return the logs of all started processes, by name."""
        return {log.stem: log for log in sorted(self.folder.glob("*.log"))}

    def log_tail(self, name: str, lines: int = 20) -> str:
        """Return the last lines that a process wrote."""
        log = self.log(name)
        if not log.exists():
            return "(no log)"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) or "(nothing written)"

    def close(self, keep_logs: bool | None = None) -> None:
        """Stop what is still running, remove the folder, and check that nothing is left.

        `keep_logs` (by default whether $VOLCANO_PY_KEEP_LOGS is set) copies the logs next to the folder first.
        """
        self.stop_all()
        if keep_logs if keep_logs is not None else bool(os.environ.get(KEEP_LOGS)):
            self._save_logs()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._end_watchdog()
        left = []
        for group in self._groups:
            if members := _members_that_stay(group):
                left.append(f"processes {members} of group {group}")
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
        if self.folder.exists():
            left.append(f"folder {self.folder}")
        if left:
            raise LeftBehind(f"still there after the end: {', '.join(left)}")

    def _save_logs(self) -> None:
        kept = self.folder.with_name(f"{self.folder.name}-logs")
        kept.mkdir(exist_ok=True)
        for log in self.logs().values():
            shutil.copy(log, kept)
        sys.stderr.write(f"logs kept in {kept}\n")

    def _end_watchdog(self) -> None:
        assert self._watchdog.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watchdog.stdin.close()
        try:
            self._watchdog.wait(10)
        except subprocess.TimeoutExpired:
            self._kill(self._watchdog)

    def _tell_watchdog(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{line}\n".encode())
        self._watchdog.stdin.flush()

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def living_members(group: int) -> list[int]:
    """Return the running processes of a group; zombies (ended, not yet reaped) do not count."""
    if not PROC.is_dir():
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return []
        return [group]
    members = []
    for stat in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended during the search
            # pid (name) state parent group ...; the name may hold spaces and brackets
            state, _, member_of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                members.append(int(stat.parent.name))
    return members


def _members_that_stay(group: int) -> list[int]:
    """Return the processes left of a group whose leader has ended; killed processes get a moment to end."""
    deadline = time.monotonic() + LAST_MOMENT_S
    while (members := living_members(group)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return members
