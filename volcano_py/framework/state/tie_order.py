"""The order of nodes with equal scores: by name, or shuffled by a seed and the names alone."""

from hashlib import blake2b

import numpy as np

from volcano_py.model.arrays import Rows


def tie_order(names: tuple[str, ...], seed: int) -> Rows | None:
    """Return node rows in the order in which ties are broken, shape (n_nodes,); None for the order of rows.

    Rows are in order of names, so seed 0 needs no table. Any other seed orders nodes by a hash of seed and name. So a
    node that is added or removed does not reshuffle the others, and row numbers play no part.
    """
    if seed == 0:
        return None
    key = seed.to_bytes(8, "big", signed=True)
    digests = [blake2b(name.encode(), digest_size=8, key=key).digest() for name in names]
    return np.array(sorted(range(len(names)), key=digests.__getitem__), dtype=np.intp)
