"""The entry points of the installed programs: a signal ends them silently from the first moment.

Importing the rest takes a second. During that second, Python would answer Ctrl-C with a traceback. The first process of
a container would ignore signals, because they have no default action there.

To add a program: its module in `volcano_py.cli` with ``main() -> int``, a line at the end here, and one in
``[project.scripts]`` of pyproject.toml.
"""

import os
import signal
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import FrameType

from volcano_py.cli.output import abandon_output, prepare_output


def _begin(module: str, *, daemon: bool = False) -> int:
    """Run ``main()`` of a module; return the exit code.

    SIGHUP does not end a daemon: it asks for files to be read, and a daemon reads them soon.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    if daemon:
        signal.signal(signal.SIGHUP, _go_on)
    prepare_output()
    try:
        try:
            code: int = import_module(module).main()
        except SystemExit:  # such as after --help; after any other error, its traceback counts and not the output
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough (`| head`)
        abandon_output()
        return 128 + signal.SIGPIPE
    return code


def _end(number: int, _: FrameType | None) -> None:
    """Exit at once, with the exit code of a process that a signal has ended; nothing must be cleaned up yet."""
    # The signal may have come in the middle of a write, or the reader of the output may be gone.
    with suppress(AttributeError, OSError, RuntimeError, ValueError):
        sys.stdout.flush()
    os._exit(128 + number)


def _go_on(number: int, _: FrameType | None) -> None:
    """Do nothing. Unlike SIG_IGN, programs that this one starts do not inherit it."""


# The programs, under the names that pyproject.toml refers to.
vc_scheduler = partial(_begin, "volcano_py.cli.vc_scheduler", daemon=True)
vc_controller_manager = partial(_begin, "volcano_py.cli.vc_controller_manager", daemon=True)
vc_webhook_manager = partial(_begin, "volcano_py.cli.vc_webhook_manager", daemon=True)
volcano_py = partial(_begin, "volcano_py.cli.volcano_py")
vcctl = partial(_begin, "volcano_py.cli.vcctl")
kubectl_vc = partial(_begin, "volcano_py.cli.kubectl_vc")
kubectl_complete_vc = partial(_begin, "volcano_py.cli.kubectl_complete_vc")
vsub = partial(_begin, "volcano_py.cli.vsub")
vjobs = partial(_begin, "volcano_py.cli.vjobs")
vqueues = partial(_begin, "volcano_py.cli.vqueues")
vcancel = partial(_begin, "volcano_py.cli.vcancel")
vsuspend = partial(_begin, "volcano_py.cli.vsuspend")
vresume = partial(_begin, "volcano_py.cli.vresume")
