from fractions import Fraction

import pytest

from volcano_py.api.quantity import QuantityError, WireQuantity, milli, parse_quantity, whole

LARGEST = 2**63 - 1
SUFFIXES = {
    "n": Fraction(1, 1_000_000_000),
    "u": Fraction(1, 1_000_000),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1_000),
    "M": Fraction(1_000_000),
    "G": Fraction(1_000_000_000),
    "T": Fraction(1_000_000_000_000),
    "P": Fraction(1_000_000_000_000_000),
    "E": Fraction(1_000_000_000_000_000_000),
    "Ki": Fraction(1 << 10),
    "Mi": Fraction(1 << 20),
    "Gi": Fraction(1 << 30),
    "Ti": Fraction(1 << 40),
    "Pi": Fraction(1 << 50),
    "Ei": Fraction(1 << 60),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("number", ["1", "+7", "-3."])
def test_every_suffix_counts(number: str, suffix: str) -> None:
    assert parse_quantity(number + suffix) == Fraction(number.rstrip(".")) * SUFFIXES[suffix]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5Gi", 1_610_612_736),
        (".5k", 500),
        ("2.5n", Fraction(3, 10**9)),
        ("1e3", 1000),
        ("12E1", 120),
        ("5e-1", Fraction(1, 2)),
        ("1.5e+2", 150),
        (7, 7),
        (0.25, Fraction(1, 4)),
        ("0.5n", Fraction(1, 10**9)),
        ("-0.5n", -Fraction(1, 10**9)),
        ("1.0000000001", 1 + Fraction(1, 10**9)),
        ("1e30", LARGEST),
        ("-1e999999999", -LARGEST),
        ("1e-999999999", Fraction(1, 10**9)),
        ("16Ei", LARGEST),
        ("999999999999999Ti", LARGEST),
        ("9223372036854775807", LARGEST),
        ("007m", Fraction(7, 1000)),
        ("0", 0),
    ],
)
def test_exponents_numbers_and_values_that_do_not_fit(text: WireQuantity, value: Fraction | int) -> None:
    """What is finer than 10^-9 is rounded away from zero, what is greater than 64 bits hold is the greatest."""
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    ("text", "in_units", "in_thousandths"),
    [
        ("1", 1, 1000),
        ("0.1m", 1, 1),
        ("100n", 1, 1),
        ("1.0005", 2, 1001),
        ("-1.5", -2, -1500),
        ("8E", 8 * 10**18, LARGEST),
    ],
)
def test_whole_units_and_thousandths_are_rounded_away_from_zero(text: str, in_units: int, in_thousandths: int) -> None:
    value = parse_quantity(text)

    assert (whole(value), milli(value)) == (in_units, in_thousandths)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1K",
        "1ki",
        "1e",
        "e3",
        "1e3m",
        "1E1Ki",
        "0x10",
        "1_0",
        "\u0661",
        "1e\u0661",
        "1.2.3",
        "--1",
        "Inf",
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity: write a number with an optional suffix"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["1" * 65, "0." + "0" * 5000 + "1", "1e" + "9" * 1_000_000, "x" * 1_000_000])
def test_a_text_that_is_too_long_is_refused_in_few_words_and_not_kept(text: str) -> None:
    """The minimum of a PodGroup may have any number; 65,536 of a megabyte would end the process."""
    kept = parse_quantity.cache_info().currsize

    with pytest.raises(QuantityError, match=r"more characters are not a quantity: write 64 at most") as raised:
        parse_quantity(text)

    assert len(str(raised.value)) < 120
    assert parse_quantity.cache_info().currsize == kept
