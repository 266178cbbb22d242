"""Every kind of fault takes effect: one that never does proves nothing."""

from dataclasses import replace

import pytest

from tests.simulation.drawing import draw_plan
from tests.simulation.draws import Draws
from tests.simulation.faults import FAULTS
from tests.simulation.plan import Plan, Size, Strike
from tests.simulation.world import simulate

READS = ("some cannot be read", "gone as it is read")
"""Faults that need pods to be read, which happens when answers to binds are lost."""
SMALL = Size("small", 16.0, 5, (1, 1), (3, 3), 1.0)
TRIES = 20


def with_one(kind: str, seed: int) -> Plan:
    """Return a small plan with one fault, which begins when some work has come."""
    strike = FAULTS[kind].strike(0, 2.0 + 2.0 * (seed % 6), Draws(seed, kind))
    lost = Strike(1, 1.0, "dropped after it took effect", "create pods/binding", 10.0, 1.0)
    strikes = (strike, lost) if kind in READS else (strike,)
    return replace(draw_plan(seed, SMALL), strikes=strikes, webhooks=FAULTS[kind].webhooks)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_takes_effect_in_some_seed(kind: str) -> None:
    assert any(kind in simulate(with_one(kind, seed)).struck for seed in range(TRIES))
