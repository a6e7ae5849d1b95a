"""Generation: a model writes one token per step; the caller sees each step and may stop.

Greedy decoding and beam search: Sutskever et al. 2014, section 3.2.
"""

from transformer_core.generation.beam import BeamStep, Hypothesis, beam_search, best_of, exhaustive_search, ranked
from transformer_core.generation.sampling import Written, greedy, greedy_words, probabilities, sample
from transformer_core.generation.speculative import SpeculativePass, greedy_from_drafts
from transformer_core.generation.translate import translate
from transformer_core.generation.writer import Writer
from transformer_core.layers.cache import KeyValueCache

__all__ = [
    "BeamStep",
    "Hypothesis",
    "KeyValueCache",
    "SpeculativePass",
    "Writer",
    "Written",
    "beam_search",
    "best_of",
    "exhaustive_search",
    "greedy",
    "greedy_from_drafts",
    "greedy_words",
    "probabilities",
    "ranked",
    "sample",
    "translate",
]
