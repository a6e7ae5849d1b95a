"""How a page writes numbers: significant digits with a power of ten, percent, milliseconds, and tables of them."""

from collections.abc import Iterable, Sequence

from pages.language import with_minus

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
GREAT = 1e6


def minus(number: str) -> str:
    """Return a written number with a minus sign in the place of a hyphen."""
    return number.replace("-", "−")


def significant(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """Write a number such as 0.61, −3.1×10⁻⁷ or 12,340.

    Args:
        digits: that count; a number up to a million has all those before its point.
        sign: write that of a number above 0, too.
    """
    mantissa, exponent = _parts(value, digits, sign=sign)
    return minus(mantissa) + (f"×10{exponent.translate(SUPERSCRIPT)}" if exponent else "")


def significant_in_tex(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """Write the same in TeX, for the inside of a formula."""
    mantissa, exponent = _parts(value, digits, sign=sign)
    return mantissa.replace(",", "{,}") + (rf"\cdot 10^{{{exponent}}}" if exponent else "")


def percent(share: float) -> str:
    """Write a probability or a share in percent, a small one with more places."""
    if share == 0:
        return "0%"
    if share >= 0.01:
        return f"{share:.1%}"
    return f"{share:.2%}" if share >= 0.0001 else "< 0.01%"


def _parts(value: float, digits: int, *, sign: bool) -> tuple[str, str]:
    value = value or 0.0  # without the minus of −0
    plus = "+" if sign and value else ""
    if 10**digits - 0.5 <= abs(value) < GREAT:
        return f"{value:{plus},.0f}", ""
    mantissa, _, exponent = f"{value:{plus}.{digits}g}".partition("e")
    return mantissa.replace("inf", "∞").replace("nan", "–"), str(int(exponent)) if exponent else ""


def milliseconds(seconds: float) -> str:
    """Write a time in milliseconds with three digits."""
    return f"{significant(1_000 * seconds, 3)} ms"


def in_bytes(count: float) -> str:
    """Write a number of bytes with its unit, KiB or from 2^20 on MiB."""
    return f"{count / 2**20:,.2f} MiB" if count >= 2**20 else f"{count / 2**10:,.1f} KiB"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: int = 0) -> str:
    """Return a table in Markdown, its last `right` columns aligned to the right."""
    bars = ["---"] * (len(head) - right) + ["---:"] * right
    return "\n".join(f"| {' | '.join(map(with_minus, row))} |" for row in (head, bars, *rows))
