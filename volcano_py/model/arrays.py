"""The array types used for columns. Docstrings and comments state the shapes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Rows = NDArray[np.intp]
"""Row numbers of tasks, jobs, queues or nodes."""
Objects = NDArray[np.object_]
"""Objects by row. Python's garbage collector looks at each item of a list, and at nothing in an array."""
Codes = NDArray[np.int32]


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Let nobody write to an array any more, and return it."""
    array.flags.writeable = False
    return array
