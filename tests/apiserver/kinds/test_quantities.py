"""Quantities, as far as the server must judge them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from volcano_py.apiserver.kinds.quantities import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", "1"),
        ("100m", "0.1"),
        ("1.5Gi", "1610612736"),
        ("2Ei", "2305843009213693952"),
        ("1E", "1000000000000000000"),
        ("1E3", "1000"),
        ("1e-3", "0.001"),
        ("-5k", "-5000"),
        ("+.5", "0.5"),
        ("5n", "5e-9"),
    ],
)
def test_quantities_are_read(text: str, value: str) -> None:
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "x", "1xx", "1 Gi", "1.2.3", "Gi", "1gi", "--1", "1e", "0x10"])
def test_a_text_that_is_no_quantity_is_none(text: str) -> None:
    assert quantity(text) is None
