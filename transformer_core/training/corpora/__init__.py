"""Corpora of our own: reviews, sequences of letters and a text to read, all written for this project.

Read next: grammar.py.
"""

from transformer_core.training.corpora.grammar import Language
from transformer_core.training.corpora.passages import passage
from transformer_core.training.corpora.reviews import facts, reviews, written_reviews
from transformer_core.training.corpora.sequences import Rule, answer, sequences
from transformer_core.training.corpora.writing import Review

__all__ = ["Language", "Review", "Rule", "answer", "facts", "passage", "reviews", "sequences", "written_reviews"]
