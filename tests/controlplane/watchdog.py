"""Cleans up after a test run that died: kills its processes and removes its folder.

It runs as a separate process (`python watchdog.py FOLDER`) in its own session, so that it survives Ctrl-C and SIGKILL
of the test run. It reads standard input: `+PID` and `-PID` say which processes exist. Each PID leads a process group.
The end of input means that the test run has ended, orderly or not, and that everything left must be removed. (The
kernel's parent-death signal would not do: it fires when the *thread* that started a child ends, and it removes no
folder.)
"""

import contextlib
import os
import shutil
import signal
import sys


def watch(folder: str) -> None:
    """Follow the list of processes until the input ends, then remove what is left."""
    alive: set[int] = set()
    for line in sys.stdin:
        pid = int(line[1:])
        if line.startswith("+"):
            alive.add(pid)
        else:
            alive.discard(pid)
    for pid in alive:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    watch(sys.argv[1])
