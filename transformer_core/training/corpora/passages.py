"""A text to read for models that guess the next character or a hidden word: a story of our own, then reviews.

Read next: ../baselines.py.
"""

import functools
from typing import get_args

from transformer_core.config import require_choice
from transformer_core.training.corpora.grammar import CORPORA, Language
from transformer_core.training.corpora.reviews import reviews

REVIEWS = 600


@functools.cache
def passage(language: Language) -> str:
    """Return a text of several thousand characters, a paragraph or a review a line; it is always the same.

    Raises:
        ValueError: there is no such language.
    """
    require_choice("language", language, get_args(Language))
    story = (CORPORA / "stories" / f"{language}.txt").read_text(encoding="utf-8")
    return story + "".join(f"{review.text}\n" for review in reviews(language, train=REVIEWS, held_out=0)[0])
