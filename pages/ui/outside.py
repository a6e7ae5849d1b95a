"""Is this text outside what the model learned? A note with its measured number, beside what is usual to the model."""

from pages.ui.asking import ask_once
from pages.ui.language import t
from transformer_core.analysis.strangeness import strangeness
from transformer_core.bundle import Bundle
from transformer_core.text import Encoding


def outside_note(bundle: Bundle, encoding: Encoding) -> str | None:
    """Return in words that a text is stranger to a model than nearly all it was measured on; None where it is not.

    Args:
        encoding: of the text as the model reads it.
    """
    if not bundle.measured.usual or all(encoding.special):
        return None
    found = ask_once(strangeness, bundle=bundle, text=encoding.text, n_tokens=len(encoding)).value
    there = [usual for usual in bundle.measured.usual if usual.measure == found.measure]
    if found.value is None or not there:
        return None
    nearest = max(there, key=lambda usual: usual.high)
    if found.value <= nearest.high:
        return None
    return t(
        f"outside.{found.measure}",
        value=f"{found.value:.1f}",
        median=f"{nearest.median:.1f}",
        high=f"{nearest.high:.1f}",
        unit=t(f"unit.{nearest.unit}"),
        data=nearest.data,
    )
