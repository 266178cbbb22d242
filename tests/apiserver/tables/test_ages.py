"""Ages, as tables show them."""

from __future__ import annotations

import pytest

from volcano_py.apiserver.tables.ages import age, duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-0.5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 1800, "5h30m"),
        (30 * 3600, "30h"),
        (3 * 86400 + 7200, "3d2h"),
        (100 * 86400, "100d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_longer_ages_are_shown_with_less_precision(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize("text", [None, "", "yesterday", 5])
def test_a_text_that_is_no_time_is_an_unknown_age(text: object) -> None:
    assert age(text) == "<unknown>"


def test_fractions_of_seconds_are_understood() -> None:
    assert age("1970-01-01T00:00:10.123456Z", now=15.0) == "5s"
