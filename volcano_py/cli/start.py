"""Where the installed programs begin: a signal ends them in silence from the first moment on.

Loading the rest takes a second. In that time Python would answer Ctrl-C with a traceback, and the first process of a
container, for which signals have no default, would not notice that it is to end.

To add a program: its module in `volcano_py.cli` with ``main() -> int``, a line at the end here, and one in
``[project.scripts]`` of pyproject.toml.
"""

import os
import signal
import sys
from functools import partial
from importlib import import_module
from types import FrameType


def _begin(module: str) -> int:
    """Begin as the program of a module, which has ``main()``; return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    code: int = import_module(module).main()
    return code


def _end(number: int, _: FrameType | None) -> None:
    """End at once, with the exit code of a process that a signal has ended; nothing has begun that could be undone."""
    sys.stdout.flush()
    os._exit(128 + number)


# The programs, under the names that pyproject.toml refers to.
vc_scheduler = partial(_begin, "volcano_py.cli.vc_scheduler")
vc_controller_manager = partial(_begin, "volcano_py.cli.vc_controller_manager")
volcano_py = partial(_begin, "volcano_py.cli.volcano_py")
