"""A text to write like: a story of our own, and after it reviews from the grammar, one a line.

Read next: ../tasks/make.py.
"""

from functools import lru_cache

from transformer_core.training.corpora.grammar import CORPORA, Language
from transformer_core.training.corpora.reviews import reviews

N_REVIEWS = 2_400


@lru_cache(maxsize=2)
def passage(language: Language) -> str:
    """Return the text of a language that next characters and hidden words are learned from; always the same."""
    story = (CORPORA / "stories" / f"{language}.txt").read_text(encoding="utf-8")
    train, _ = reviews(language, train=N_REVIEWS, held_out=0)
    return story + "".join(f"{review.text}\n" for review in train)
