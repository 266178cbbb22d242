"""Names the line of a plugin that hangs or that ends the process of its trial."""

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

_OURS: Final = Path(__file__).parents[1]
_PYTHONS: Final = Path(sysconfig.get_path("stdlib"))
_PACKAGES: Final = frozenset({"site-packages", "dist-packages"})


def watch(folder: str, limit_s: float, last_line: str) -> None:
    """From now on, name the line at which this process ends in the middle, or at which it is after ``limit_s`` seconds.

    After that time the process prints the line and ``last_line``, and ends with code 1.
    """
    main = threading.main_thread().ident or 0

    def stop() -> None:
        place = place_of(sys._current_frames().get(main), folder)
        where = f"{place}: the plugin hangs or is slow" if place else "no plugin is to blame"
        print(f"{where}: the trial has not ended after {limit_s:g} s", last_line, sep="\n", flush=True)  # noqa: T201
        end(1)

    end = _named_end(folder)
    timer = threading.Timer(limit_s, stop)
    timer.daemon = True
    timer.start()


def _named_end(folder: str) -> Callable[[int], NoReturn]:
    """Have this process name the line that ends it with `os._exit`; return the function that ends it in silence."""
    end, process = os._exit, os.getpid()

    def named(status: int) -> NoReturn:
        if os.getpid() == process and (place := place_of(sys._getframe(1), folder)):
            print(f"{place}: the plugin ends the process", file=sys.stderr, flush=True)  # noqa: T201
        end(status)

    os._exit = named
    return end


def place_of(frame: FrameType | None, folder: str) -> str:
    """Return file and line of the innermost code of a plugin, in the folder or else in a package; "" for none."""
    frames = list(_outwards(frame))
    inside = [one for one in frames if folder and Path(one.f_code.co_filename).parent == Path(folder)]
    others = [one for one in frames if _is_foreign(one.f_code.co_filename)]
    for one in (*inside, *others):
        return f"{one.f_code.co_filename}:{one.f_lineno}"
    return ""


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_foreign(file: str) -> bool:
    """Say whether a file is neither ours nor Python's own."""
    path = Path(file)
    if file.startswith("<") or path.is_relative_to(_OURS):
        return False
    return not path.is_relative_to(_PYTHONS) or not _PACKAGES.isdisjoint(path.parts)
