"""Remembering for a while."""

from volcano_py.controllers.recent import Recent
from volcano_py.runtime.clock import FakeClock


def test_added_keys_are_remembered_for_a_while() -> None:
    clock = FakeClock()
    recent: Recent[str] = Recent(clock, lasts_s=10)
    recent.add("a")
    clock.advance(9)
    before = "a" in recent
    clock.advance(2)

    assert (before, "a" in recent) == (True, False)


def test_discarded_keys_are_forgotten() -> None:
    recent: Recent[str] = Recent(FakeClock())
    recent.add("a")

    recent.discard("a")

    assert "a" not in recent


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    recent: Recent[str] = Recent(FakeClock(), capacity=2)

    for entry in ("a", "b", "a", "c"):
        recent.add(entry)

    assert [entry in recent for entry in ("a", "b", "c")] == [True, False, True]
