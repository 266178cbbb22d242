"""A configuration file that may change while the process runs.

The process polls the file: the target of its path (a ConfigMap is switched by a symbolic link above the file), its size
and its times. A change counts only when two polls in a row have found the same state, so that a file that is being
written is not read half-way. A read that fails is repeated.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from volcano_py.conf.defaults import BUILT_IN_CONF, BUILT_IN_FILE
from volcano_py.conf.loader import parse_conf, read_conf
from volcano_py.conf.schema import ConfError, SchedulerConf

_LONGEST_PAUSE: Final = 64  # polls until a file that could not be read is read again
_HASH_LENGTH: Final = 16  # hexadecimal digits: enough to tell the configurations of one cluster apart


@dataclass(frozen=True, slots=True)
class LoadedConf:
    """A configuration with the text that it was read from."""

    conf: SchedulerConf
    text: str

    @property
    def hash(self) -> str:
        """The beginning of the text's SHA-256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:_HASH_LENGTH]


class FileState(NamedTuple):
    """What a poll of a file finds; different content gives a different state."""

    path: str = ""
    inode: int = 0
    size: int = 0
    modified_ns: int = 0
    changed_ns: int = 0


def file_state(path: Path) -> FileState:
    """Return the state of a file, or of the target of a symbolic link."""
    try:
        resolved = os.path.realpath(path)
        found = os.stat(resolved)
    except OSError:
        return FileState()  # the file is gone, which is a state, too
    return FileState(resolved, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class Watched:
    """Something on a disk, with its state when it was last read."""

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look
        self._read: object = None
        self._last: object = None
        self._failures = 0  # of reads of this state
        self._pause = 0  # polls until the read that failed is repeated, 0 if it has not failed

    def reading(self) -> None:
        """Note that it is about to be read; call this first, so that the next poll sees a change during the read."""
        state = self._look()
        if state != self._read:
            self._failures = 0
        self._read = self._last = state
        self._pause = 0

    def is_as_read(self) -> bool:
        """Say whether it is still as it was when it was last read."""
        return self._look() == self._read

    def failed(self, error: OSError) -> None:
        """Note that the read failed: the next poll asks for another one, the next ones after pauses that double.

        A file that is gone is not read again before it changes, which it does when it comes back.
        """
        if not isinstance(error, FileNotFoundError):
            self._pause = min(2**self._failures, _LONGEST_PAUSE)
            self._failures = min(self._failures + 1, _LONGEST_PAUSE)

    def changed(self) -> bool:
        """Poll it; say whether it must be read: it differs from what was read, or the read failed.

        A change counts only if the state has not changed since the last poll.
        """
        before, self._last = self._last, self._look()
        if self._last != before or self._last != self._read:
            return self._last == before
        if not self._pause:
            return False
        self._pause -= 1
        return not self._pause


class ConfFile:
    """A configuration file that may change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._watched = Watched(lambda: file_state(path))

    def load(self) -> LoadedConf:
        """Read the file; raise ConfError with file, line and key if it cannot be used."""
        self._watched.reading()
        try:
            text = read_conf(self.path)
        except ConfError as error:
            if isinstance(error.__cause__, OSError):
                self._watched.failed(error.__cause__)
            raise
        return LoadedConf(parse_conf(text, str(self.path)), text)

    def changed(self) -> bool:
        """Poll the file; say whether it differs from what was read, and has not changed since the last poll."""
        return self._watched.changed()


def built_in() -> LoadedConf:
    """Return the configuration for a scheduler without a configuration file."""
    return LoadedConf(parse_conf(BUILT_IN_CONF, BUILT_IN_FILE), BUILT_IN_CONF)
