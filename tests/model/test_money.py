"""Money is exact: no float, no exponent, nothing rounded down."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.model.money import exact, is_amount, plain, priced


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0"),
        ("0E-12", "0"),
        ("1E+3", "1000"),
        ("0.0123000", "0.0123"),
        ("12.50", "12.5"),
        ("1E-12", "0.000000000001"),
    ],
)
def test_an_amount_is_plain_text(amount: str, text: str) -> None:
    assert plain(Decimal(amount)) == text


def test_what_is_finer_than_a_millionth_of_a_millionth_is_rounded_up() -> None:
    assert plain(priced(1, Decimal("0.0000001"))) == "0.000000000001"
    assert plain(priced(3, Decimal("0.15"))) == "0.00000045"


@given(st.lists(st.tuples(st.integers(0, 10**9), st.decimals(0, 10**6, places=6)), max_size=20))
def test_sums_are_the_same_in_any_order(items: list[tuple[int, Decimal]]) -> None:
    amounts = [priced(tokens, price) for tokens, price in items]
    assert sum(amounts, Decimal(0)) == sum(reversed(amounts), Decimal(0))
    assert sum(amounts, Decimal(0)) - sum(amounts, Decimal(0)) == 0
    assert all(Decimal(plain(amount)) == amount == exact(amount) for amount in amounts)


@pytest.mark.parametrize("figure", ["NaN", "sNaN", "Infinity", "-0.01", "1e30"])
def test_a_figure_that_can_be_no_amount_is_not_believed(figure: str) -> None:
    assert not is_amount(Decimal(figure))
    assert is_amount(Decimal("0.02"))
