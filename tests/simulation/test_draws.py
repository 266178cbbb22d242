"""Random numbers by name."""

from tests.simulation.draws import Draws, generator

KNOWN = 0.634447


def test_a_name_has_its_own_numbers() -> None:
    """They depend on seed and name, not on what others draw."""
    alone = Draws(1, "one")
    first = [alone.fraction() for _ in range(5)]
    one, other = Draws(1, "one"), Draws(1, "other")
    mixed = [(one.fraction(), other.fraction()) for _ in range(5)]
    assert [pair[0] for pair in mixed] == first
    assert [pair[1] for pair in mixed] != first
    assert Draws(2, "one").fraction() != first[0]


def test_numbers_keep_to_their_bounds() -> None:
    """Whole numbers include both, fractions leave out 1."""
    draws = Draws(3, "bounds")
    assert {draws.whole(2, 4) for _ in range(200)} == {2, 3, 4}
    assert all(0.0 <= draws.fraction() < 1.0 for _ in range(1000))
    assert all(5.0 <= draws.between(5.0, 6.0) < 6.0 for _ in range(1000))
    assert {draws.one_of("abc") for _ in range(200)} == set("abc")
    assert not draws.happens(0.0)
    assert draws.happens(1.0)


def test_numbers_are_the_same_on_every_machine() -> None:
    """A seed that somebody reports is the same one here."""
    assert round(Draws(7, "known").fraction(), 6) == KNOWN
    assert generator(7, "known").random() == generator(7, "known").random()
