"""The console of benchmarks: as wide as the terminal, and wide in files and pipes."""

import sys

from rich.console import Console

_WIDTH_OF_FILES = 160


def a_console() -> Console:
    """Return a console."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_FILES)
