"""How many numbers a model learned, beside a model that people have heard of."""

from pages.kit.number_format import significant
from pages.language import t

GPT2_SMALL = 124_439_808  # learned numbers, tied ones once (Radford et al. 2019)
ALIKE = 1.5  # times as many are no longer about as many


def size_in_words(count: int) -> str:
    """Return a count of learned numbers with how many times as many GPT-2 small has, or this model.

    Args:
        count: at least 1.
    """
    times = GPT2_SMALL / count
    said = "fewer" if times >= ALIKE else "more" if times <= 1 / ALIKE else "alike"
    written = "" if said == "alike" else significant(max(times, 1 / times), 2)
    return t(f"diagram.parameters_{said}", count=f"{count:,}", times=written)
