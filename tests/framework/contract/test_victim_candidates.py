"""Sums over earlier candidates, against a walk over the list."""

from random import Random

import numpy as np
import pytest

from volcano_py.framework.contract.victim_candidates import Earlier


@pytest.mark.parametrize("number", range(30))
def test_counts_before_a_candidate_equal_a_walk_over_the_candidates(number: int) -> None:
    random = Random(number)
    n = random.randint(0, 12)
    groups = sorted(random.randint(0, 3) for _ in range(n))
    keys = [random.randint(-1, 2) for _ in range(n)]
    amounts = np.array([[random.randint(0, 9) for _ in range(n)] for _ in range(2)], dtype=float).reshape(2, n)
    holds = np.array([random.random() < 0.3 for _ in range(n)], dtype=bool)
    earlier = Earlier(np.array(groups, dtype=np.intp), np.array(keys, dtype=np.intp))

    before = [
        [other for other in range(row) if (groups[other], keys[other]) == (groups[row], keys[row])] for row in range(n)
    ]
    assert earlier.count().tolist() == [len(rows) for rows in before]
    assert earlier.total(amounts).T.tolist() == [amounts[:, rows].sum(axis=1).tolist() for rows in before]
    assert earlier.any(holds).tolist() == [bool(holds[rows].any()) for rows in before]
