"""The standard output of a program: it may be closed, have no reader any more, or know few letters."""

import io
import os
import sys
from contextlib import suppress


def prepare_output() -> None:
    """Make sure that there is an output, and that it takes every character."""
    if sys.stdout is None:  # the caller has closed it (`>&-`)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it is the output until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal may not know all letters, such as an ellipsis; a program should be able to tell what was there.
        sys.stdout.reconfigure(errors="replace" if sys.stdout.isatty() else "backslashreplace")


def abandon_output() -> None:
    """Send what is not written yet to nowhere; else the interpreter tries once more at its end, and complains."""
    with suppress(OSError, ValueError):  # an output without a descriptor has nothing that waits
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
