"""The undo log of a cycle: undo goes newest first, subtracts what was added and puts back what was replaced.

Amounts are whole numbers below 2^53, so subtracting what was added restores every bit (`model.resources`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Floats

Rows = NDArray[np.intp]


_Counter = Callable[[int, list[int], int], None]
_REPLACED, _ADDED, _COUNTED = range(3)

_Entry = tuple[int, Any, Rows | int, Any]
"""The operation; its block, column or counter; the position in it; and the amounts, old values or counts.

It is a plain tuple because every placed task makes five of them, and a named tuple is slower to create.
"""


class Journal:
    """Applies changes to columns and records how to undo them.

    A checkpoint is a position in the log; checkpoints may be nested. The journal also lists the nodes of every change
    and of every undo in order, so caches can refresh only these nodes.
    """

    __slots__ = ("_log", "_touched", "n_touched")

    def __init__(self) -> None:
        self._log: list[_Entry] = []
        self._touched: Rows = np.zeros(1024, dtype=np.intp)
        self.n_touched = 0  # length of the list of touched nodes

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
        self._log.append((_ADDED, block, columns, amounts))

    def add_to_nodes(self, block: Floats, columns: Rows | int, amounts: Floats) -> None:
        """Add amounts to the nodes' block as `add` does, and list the nodes as touched."""
        if isinstance(columns, int) and self.n_touched < len(self._touched):  # the most frequent case, without calls
            view = block[:, columns]
            view += amounts
            self._log.append((_ADDED, block, columns, amounts))
            self._touched[self.n_touched] = columns
            self.n_touched += 1
            return
        self.add(block, columns, amounts)
        self.touch(columns)

    def touch(self, columns: Rows | int) -> None:
        """List nodes as touched whose block was changed by other means."""
        end = self.n_touched + (1 if isinstance(columns, int) else len(columns))
        if end > len(self._touched):
            self._touched = np.resize(self._touched, 2 * end)
        self._touched[self.n_touched : end] = columns
        self.n_touched = end

    def touched_since(self, position: int) -> Rows:
        """Return the nodes that were touched after the first ``position`` ones, in order; nodes may repeat."""
        return self._touched[position : self.n_touched]

    def touched_last(self, n: int) -> Rows:
        """Return the n nodes that were touched last, or all if there are fewer; nodes may repeat."""
        return self._touched[max(0, self.n_touched - n) : self.n_touched]

    def replace(self, column: NDArray[Any], rows: Rows | int, values: Any) -> None:
        """Set some elements of a column and record their old values."""
        old = column[rows] if isinstance(rows, int) else column[rows].copy()
        column[rows] = values
        self._log.append((_REPLACED, column, rows, old))

    def tell(self, counter: _Counter, kind: int, nodes: list[int], by: int) -> None:
        """Call ``counter(kind, nodes, by)``, and on undo the same with ``-by``; for counts that are not in columns."""
        counter(kind, nodes, by)
        self._log.append((_COUNTED, counter, kind, (nodes, by)))

    def rollback(self, checkpoint: int, nodes: Floats | None = None) -> None:
        """Undo everything since the checkpoint; undoing a change of the block ``nodes`` touches these nodes again."""
        while len(self._log) > checkpoint:
            kind, target, where, what = self._log.pop()
            if kind == _ADDED:
                target[:, where] -= what
                if target is nodes:
                    self.touch(where)
            elif kind == _COUNTED:
                counted, by = what
                target(where, counted, -by)
            else:
                target[where] = what
