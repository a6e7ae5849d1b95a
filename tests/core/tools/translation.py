"""A translator of letters, trained within a second, as a bundle."""

from functools import lru_cache

from transformer_core.analysis.translation.letter_search import trained_letters
from transformer_core.bundle import Bundle

SOURCE = "a b c a b"


@lru_cache(maxsize=1)
def letters_bundle() -> Bundle:
    """Return a translator that reverses letters, not well."""
    letters = trained_letters("reverse", epochs=4, seed=0)
    return Bundle("letters", letters.model, letters.tokenizer)
