"""The undo log of a cycle: what was added is subtracted, what was replaced is put back, newest first.

Amounts are whole numbers below 2^53, so subtracting what was added restores every bit (`model.resources`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.resources import Floats

Rows = NDArray[np.intp]


_Entry = tuple[bool, NDArray[Any], Rows | int, Any]
"""Whether amounts were added, the block or column, where in it, and the amounts or what stood there.

A plain tuple, not a named one: there are five of them for every task that is placed.
"""


class Journal:
    """Applies changes to columns and remembers how to take them back.

    A checkpoint is a position in the log; checkpoints nest as far as one likes. The nodes of every change and of every
    undo are listed, in order, for caches that refresh only what moved.
    """

    __slots__ = ("_log", "_touched", "n_touched")

    def __init__(self) -> None:
        self._log: list[_Entry] = []
        self._touched: Rows = np.zeros(1024, dtype=np.intp)
        self.n_touched = 0  # how long the list of touched nodes is

    def checkpoint(self) -> int:
        """Return the present position."""
        return len(self._log)

    def add(self, block: Floats, columns: Rows | int, amounts: Floats) -> None:
        """Add amounts to some columns of a block (n_rows, n_columns).

        ``columns`` is one index and ``amounts`` (n_rows,), or distinct indexes (n,) and ``amounts`` (n_rows, n).
        """
        if isinstance(columns, int):
            view = block[:, columns]
            view += amounts
        else:
            block[:, columns] += amounts
        self._log.append((True, block, columns, amounts))

    def add_to_nodes(self, block: Floats, columns: Rows | int, amounts: Floats) -> None:
        """Do the same to the nodes' block and note the nodes as touched."""
        self.add(block, columns, amounts)
        self._touch(columns)

    def _touch(self, columns: Rows | int) -> None:
        end = self.n_touched + (1 if isinstance(columns, int) else len(columns))
        if end > len(self._touched):
            self._touched = np.resize(self._touched, 2 * end)
        self._touched[self.n_touched : end] = columns
        self.n_touched = end

    def touched_since(self, position: int) -> Rows:
        """Return the nodes that were touched after the first ``position`` ones, in order; nodes may repeat."""
        return self._touched[position : self.n_touched]

    def replace(self, column: NDArray[Any], rows: Rows | int, values: Any) -> None:
        """Set some elements of a column, remembering what stood there."""
        old = column[rows] if isinstance(rows, int) else column[rows].copy()
        column[rows] = values
        self._log.append((False, column, rows, old))

    def rollback(self, checkpoint: int, nodes: Floats | None = None) -> None:
        """Take back everything since the checkpoint; changes to ``nodes`` are noted as touched again."""
        while len(self._log) > checkpoint:
            added, target, where, what = self._log.pop()
            if added:
                target[:, where] -= what
                if target is nodes:
                    self._touch(where)
            else:
                target[where] = what
