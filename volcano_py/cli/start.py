"""Where the installed programs begin: a signal ends them in silence from the first moment on.

Loading the rest takes a second. In that time Python would answer Ctrl-C with a traceback, and the first process of a
container, for which signals have no default, would not notice that it is to end.
"""

import os
import signal
import sys
from importlib import import_module
from types import FrameType


def vc_scheduler() -> int:
    """Begin as `vc-scheduler`."""
    return _begin("volcano_py.cli.vc_scheduler")


def vc_controller_manager() -> int:
    """Begin as `vc-controller-manager`."""
    return _begin("volcano_py.cli.vc_controller_manager")


def volcano_py() -> int:
    """Begin as `volcano-py`."""
    return _begin("volcano_py.cli.volcano_py")


def _begin(module: str) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    code: int = import_module(module).main()
    return code


def _end(number: int, _: FrameType | None) -> None:
    """End at once, with the exit code of a process that a signal has ended; nothing has begun that could be undone."""
    sys.stdout.flush()
    os._exit(128 + number)
