"""Numbers as a person reads them: no machine's notation on any page."""

import math

import pytest

from pages.ui.number_format import significant, significant_in_tex


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (0.61, "0.61"),
        (0.0979, "0.098"),
        (0.00141, "0.0014"),
        (3.1e-7, "3.1×10⁻⁷"),
        (-3.1e-17, "−3.1×10⁻¹⁷"),
        (16.3, "16"),
        (99.6, "100"),
        (-163.2, "−163"),
        (12_340.4, "12,340"),
        (4.2e9, "4.2×10⁹"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "–"),
    ],
)
def test_a_number_is_written_with_two_digits_that_count(number: float, written: str) -> None:
    assert significant(number) == written


def test_digits_and_sign_are_chosen() -> None:
    assert significant(1234.56, 9) == "1234.56"
    assert significant(2.0) == "2"
    assert [significant(number, 1, sign=True) for number in (0.04, 0.0, -4e-9)] == ["+0.04", "0", "−4×10⁻⁹"]


def test_the_same_in_a_formula() -> None:
    assert significant_in_tex(1e-5, 7) == r"1\cdot 10^{-5}"
    assert significant_in_tex(-3.14e-7) == r"-3.1\cdot 10^{-7}"
    assert significant_in_tex(12_340.0) == "12{,}340"
    assert significant_in_tex(0.25, sign=True) == "+0.25"
