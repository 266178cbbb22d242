"""Schedules that once violated an invariant; the number of each is its size and seed.

`python -m tests.simulation story SEED --keep WHY` writes one down.
"""

import pytest

from tests.simulation import regressions
from tests.simulation.world import simulate


@pytest.mark.timeout(600)  # all of it is computing, which takes ten times as long on a busy machine
def test_what_was_mended_stays_mended() -> None:
    """Each plan holds now."""
    for regression in regressions.all_of_them():
        outcome = simulate(regression.plan)
        assert not outcome.violations, f"{regression.name} ({regression.why}): {outcome.violations[0]}"
