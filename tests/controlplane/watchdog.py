"""Cleans up after a test run that died: kills its processes and removes its folder.

It runs as a process of its own (`python watchdog.py FOLDER`) in a session of its own, so that neither Ctrl-C nor
SIGKILL of the test run takes it along, and listens on standard input: `+PID` and `-PID` say which processes exist.
Each PID leads a process group. The end of input means that the test run is gone, in order or not, and that whatever is
left must go. (The kernel's parent-death signal would not do: it fires when the *thread* that started a child ends, and
cleans no folder.)
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
