"""What cycles remember if the clock of the machine is set back."""

import numpy as np
import pytest

from volcano_py.framework.state.memory import Arrival, Cooldown, Memory, Nomination, PlannedEviction
from volcano_py.framework.state.texts import Texts
from volcano_py.model.objects import JobKey

JOB, OTHER = JobKey("ns", "job"), JobKey("ns", "other")
HOUR = 3600.0


def remembered(at: float) -> Memory:
    """Return a memory of a cycle at a time, with one of all that it may hold."""
    memory = Memory(now=at).next(
        times={"tdm": at - 5},
        nominations={"uid": Nomination("n0", at - 6)},
        plans=(PlannedEviction(JOB, ("uid",), at + 7),),
        cooldowns=(Cooldown(JOB, OTHER, at + 8),),
        gates_lifted={"uid": at - 9},
        arrivals={JOB: Arrival(1, at - 11, at - 10)},
        texts=Texts(renewed=np.array([at - 12, np.inf])),
    )
    assert memory.now == at
    return memory


def test_all_moments_go_back_with_the_clock() -> None:
    assert remembered(2 * HOUR).at(HOUR) == remembered(HOUR)


@pytest.mark.parametrize("later_s", [0.0, 0.5, HOUR])
def test_moments_stay_when_time_goes_on(later_s: float) -> None:
    memory = remembered(HOUR).at(HOUR + later_s)

    assert memory.now == HOUR + later_s
    assert memory.cooldowns == remembered(HOUR).cooldowns
    assert memory.times == remembered(HOUR).times


def test_a_scheduler_that_starts_remembers_no_time() -> None:
    assert Memory().at(-HOUR) == Memory(now=-HOUR)
