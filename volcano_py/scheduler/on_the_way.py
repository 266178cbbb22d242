"""What was decided about objects that do not show it yet: it is not decided again while it is on its way."""

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.state.texts import Expected
from volcano_py.model.arrays import Bools
from volcano_py.snapshot.shown import Shown


class OnTheWay:
    """The pods, or the PodGroups, of a session that ends."""

    def __init__(self, shown: Shown, before: Expected, there: Bools) -> None:
        """Compare what objects show with what the last cycle expected; nothing is awaited of those not ``there``."""
        n = len(shown.what)
        what = padded(before.what, n, 0)
        self._shown = shown
        self._before = before._replace(what=what, kind=padded(before.kind, n, 0))
        self.moved: Bools = np.asarray(shown.versions != padded(before.versions, n, -1))
        """Objects that show something new, (n,)."""
        self.unexpected: Bools = np.asarray(self.moved & (shown.what != what))
        """Those of them that show something that was not decided, (n,)."""
        self.awaited: Bools = np.asarray(there & ~self.moved & (shown.what != what))
        """Objects that do not show yet what was decided, (n,); `give_up` changes it."""
        self.any_awaited = bool(self.awaited.any())
        self.written: dict[int, tuple[int, int]] = {}
        """Rows of the objects to which something is written -> numbers of what they will show, and of its kind."""

    def expects(self, row: int, what: int) -> bool:
        """Say whether the object of a row that is awaited will show just this."""
        return bool(self._before.what[row] == what)

    def expects_kind(self, row: int, kind: int) -> bool:
        """Say whether the object of a row that is awaited will show this, but for numbers in texts."""
        return bool(self._before.kind[row] == kind)

    def give_up(self, row: int) -> None:
        """Note that the object of a row shows what it must: if what is on its way arrives, it is written again."""
        self.awaited[row] = False

    def apart(self) -> "OnTheWay":
        """Return the same before anything was written; what is done to it changes nothing here."""
        other = copy(self)
        other.awaited, other.written = self.awaited.copy(), {}
        return other

    def expected(self) -> Expected:
        """Return what the next cycle expects."""
        what = np.where(self.awaited, self._before.what, self._shown.what)
        kind = np.where(self.awaited, self._before.kind, 0)
        if self.written:
            rows = list(self.written)
            what[rows], kind[rows] = np.array(list(self.written.values()), dtype=np.int64).T
        return Expected(what, kind, self._shown.versions)


def padded(column: NDArray[Any], n: int, fill: float) -> NDArray[Any]:
    """Return a column of the last cycle with ``n`` rows; new rows have a value that differs from all."""
    missing = n - column.shape[-1]
    if missing <= 0:
        return column[..., :n]
    return np.concatenate((column, np.full((*column.shape[:-1], missing), fill, dtype=column.dtype)), axis=-1)
