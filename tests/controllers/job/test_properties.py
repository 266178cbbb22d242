"""Random runs of the job controller: whatever happens and whatever fails, each rule of `simulation.expected` holds.

``VOLCANO_PY_JOB_RUNS`` sets the number of runs, ``VOLCANO_PY_JOB_SEED`` the first seed. A failure names its seed.
"""

import os
from collections.abc import Iterator
from typing import Final

import pytest

from tests.controllers.job.simulation.run import Run, quiet

RUNS: Final = int(os.environ.get("VOLCANO_PY_JOB_RUNS", "300"))
FIRST: Final = int(os.environ.get("VOLCANO_PY_JOB_SEED", "0"))
_PARTS: Final = 6


@pytest.fixture(autouse=True)
def no_logs() -> Iterator[None]:
    with quiet():
        yield


@pytest.mark.timeout(max(120, RUNS // 5))
@pytest.mark.parametrize("part", range(_PARTS))
def test_a_job_keeps_to_its_table_and_comes_to_rest_whatever_happens(part: int) -> None:
    for seed in range(FIRST + part, FIRST + RUNS, _PARTS):
        Run(seed).run()


def test_the_same_seed_gives_the_same_run() -> None:
    assert Run(7).run() == Run(7).run()


def test_the_runs_reach_every_phase_and_every_action() -> None:
    phases, actions = set[str](), set[str]()
    for seed in range(300):
        run = Run(seed)
        run.run()
        phases |= run.phases
        actions |= run.actions
        if len(phases) == 10 and len(actions) == 8:
            break
    assert len(phases) == 10, phases
    assert len(actions) == 8, actions
