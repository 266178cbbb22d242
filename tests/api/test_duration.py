import pytest

from volcano_py.api.duration import DurationError, parse_go_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3m", 180.0), ("1h30m", 5400.0), ("-1.5s", -1.5), ("+.5s", 0.5), ("0", 0.0), ("1.s", 1.0), ("100µs", 0.0001)],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "1", " 1s", "1d", "s", "1e3s", "--1s", "\u0661s", "9999999h", "1s" * 40])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse_go_duration(text)
