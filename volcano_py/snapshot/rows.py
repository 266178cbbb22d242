"""Row numbers for keys: free rows are reused, and arrays grow by doubling."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key")


class RowTable(Generic[Key]):
    """Assigns each key a row number and reuses the rows of removed keys."""

    def __init__(self) -> None:
        self._rows: dict[Key, int] = {}
        self._free: list[int] = []
        self.height = 0  # one past the highest row ever assigned

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def get(self, key: Key) -> int | None:
        """Return the row of a key, None if it has none."""
        return self._rows.get(key)

    def add(self, key: Key) -> int:
        """Assign a row to a new key and return it."""
        row = self._free.pop() if self._free else self.height
        self.height = max(self.height, row + 1)
        self._rows[key] = row
        return row

    def remove(self, key: Key) -> int:
        """Free a key's row and return it."""
        row = self._rows.pop(key)
        self._free.append(row)
        return row

    def items(self) -> Iterator[tuple[Key, int]]:
        """Yield keys and rows."""
        yield from self._rows.items()


def grown(array: NDArray[Any], height: int, fill: float | None = 0) -> NDArray[Any]:
    """Return the array with at least ``height`` columns (its last axis); growing at least doubles them."""
    have = array.shape[-1]
    if height <= have:
        return array
    wide = np.full((*array.shape[:-1], max(height, 2 * have, 64)), fill, dtype=array.dtype)
    wide[..., :have] = array
    return wide
