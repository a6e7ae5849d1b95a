"""Corpora written for this project: reviews, a passage of running text, and sequences of letters."""

from transformer_core.training.corpora.grammar import Language
from transformer_core.training.corpora.reviews import Review, facts, passage, reviews, written_reviews
from transformer_core.training.corpora.sequences import Rule, answer, sequences

__all__ = ["Language", "Review", "Rule", "answer", "facts", "passage", "reviews", "sequences", "written_reviews"]
