"""Random clusters full of ties on which queues lend and take back: evictions end, and no newcomer waits who need not.

`tests.reference.lending` makes the clusters and says by brute force who need not wait.
"""

import pytest

from tests.reference.lending import Picture, lending, newcomers
from volcano_py.framework.state.pending_evictions import COOLDOWN_S

PERIODS = 6
# Each was once without an end, or left a queue without anything, by a rule that is simpler than the one of today.
ONCE_WRONG: dict[str, tuple[int, ...]] = {
    "proportion": (),
    "capacity": (33, 97, 479),
    "tree": (44, 51, 147, 257, 322),
}
SEEDS = [
    pytest.param(sharing, number, id=f"{sharing}-{number}")
    for sharing, numbers in ONCE_WRONG.items()
    for number in (*numbers, *range(20))
]


@pytest.mark.parametrize(("sharing", "number"), SEEDS)
def test_evictions_end_and_no_new_queue_waits_without_need(sharing: str, number: int) -> None:
    case = lending(number, sharing)
    scenario = case.scenario()
    for count, batch in enumerate(case.arrivals, 1):
        scenario.add(*(job.wire() for job in batch))
        result = scenario.run(1)
        for _ in range(PERIODS):
            before = len(result.evicted)
            scenario.wait(COOLDOWN_S + 1)
            result = scenario.run(1)
            if len(result.evicted) == before:
                break  # no cool-down is left, so later evictions would have happened by now
        scenario.wait(61)
        before = len(result.evicted)
        result = scenario.run(1)

        assert len(result.evicted) == before, f"after arrival {count} of {case}"
        assert newcomers(Picture.of(case, count, result)) == [], f"after arrival {count} of {case}"
