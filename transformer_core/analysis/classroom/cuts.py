"""Cuts: every head, word or layer taken away alone, or every matrix rounded to few bits; what becomes of the answer.

Heads: Michel et al. 2019, section 2.3; words: Zeiler and Fergus 2014, section 4.2; a layer that writes nothing: Veit et
al. 2016, section 4.1; bits: as analysis/lab/weights.py rounds.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

from transformer_core.analysis.attention.occlusion import word_importance
from transformer_core.analysis.lab.changes import code_of
from transformer_core.analysis.lab.heads_off import attentions, head_boards
from transformer_core.analysis.lab.intervention import intervene
from transformer_core.analysis.lab.weights import WeightEdit, matrices_of
from transformer_core.analysis.outcome import read, require_outcome
from transformer_core.config import require_choice
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

Of = Literal["head", "word", "layer", "bits"]
BITS = (2, 3, 4, 5, 6, 8)
STEPS = (-0.2, -0.05, 0.05, 0.2)  # of a probability: the borders of what can be foretold
MOST_CUTS = 400


@dataclass(frozen=True, eq=False)
class Cuts:
    """What each cut does to the probability of the answer.

    Shapes:
        after: (cut,), the answer's probability after each

    Args:
        of: what is cut; text: that is read.
        answer: the label of the likeliest outcome of the whole model; before: its probability.
        names: of each cut: "layer head" in numbers, the word, the layer's or the bits' number.
        columns: how many cuts stand in a row of the board: heads of a layer, else all.
    """

    of: Of
    text: str
    answer: str
    before: float
    names: tuple[str, ...]
    columns: int
    after: np.ndarray

    @property
    def change(self) -> np.ndarray:
        """The answer's probability after, minus before. # (cut,)"""
        return self.after - self.before

    @property
    def steps(self) -> np.ndarray:
        """Which of the five kinds of change each is, from 0, a fall of 0.2 or more, to 4, such a rise. # (cut,)"""
        return step_of(self.change)


def step_of(change: np.ndarray) -> np.ndarray:
    """Return which of the kinds that STEPS separates each change is; a border belongs to the kind further from 0."""
    low, high = np.array(STEPS[:2]), np.array(STEPS[2:])
    return (change[:, None] > low).sum(1) + (change[:, None] >= high).sum(1)


def cuts(*, prompt: Prompt, of: Of) -> Cuts:
    """Measure every cut of a kind alone, one forward pass each.

    Args:
        prompt: to a model that reads one text and answers.
        of: "head", "word", "layer" or "bits" (of every matrix, one step each).

    Raises:
        ValueError: of is none of these, the model predicts nothing from the text, or has more cuts than MOST_CUTS.
    """
    require_choice("of", of, get_args(Of))
    bundle, encoding = prompt.bundle, prompt.encoding
    require_outcome(bundle, encoding)
    before = read(bundle, encoding, sites=()).probabilities
    winner = int(before.argmax())
    label, whole = bundle.reader.label(winner), float(before[winner])
    names, columns, after = _MEASURED[of](prompt, winner)
    if len(names) > MOST_CUTS:
        raise ValueError(f"bundle={bundle.name!r} has {len(names)} of {of!r}; at most {MOST_CUTS} are cut for a class")
    return Cuts(of, prompt.text, label, whole, names, columns or len(names), after)


def _heads(prompt: Prompt, _: int) -> tuple[tuple[str, ...], int, np.ndarray]:
    bundle = prompt.bundle
    if bundle.config.n_layers * bundle.config.n_heads > MOST_CUTS:
        raise ValueError(f"bundle={bundle.name!r} has more than {MOST_CUTS} heads")
    boards = head_boards(prompt=prompt)
    change = boards.change[next(iter(attentions(bundle)))]  # (layer, head), in nats
    names = tuple(f"{layer} {head}" for layer, head in np.ndindex(change.shape))
    return names, change.shape[1], np.exp(boards.before + change).ravel()


def _words(prompt: Prompt, _: int) -> tuple[tuple[str, ...], int, np.ndarray]:
    found = word_importance(prompt=prompt)
    there = ~np.isnan(found.worth)
    names = tuple(prompt.text[begin:end] for begin, end in found.spans[there])
    return names, 0, found.before - found.worth[there]


def _layers(prompt: Prompt, winner: int) -> tuple[tuple[str, ...], int, np.ndarray]:
    bundle = prompt.bundle
    after = []
    for layer in counted(range(bundle.config.n_layers)):
        place = bundle.reader.site(f"layer{layer}")
        edits = {f"{place}.{part}.output": torch.zeros_like for part in ("self_attention", "feed_forward")}
        after.append(read(bundle, prompt.encoding, sites=(), edits=edits).probabilities[winner])
    return tuple(str(layer) for layer in range(len(after))), 0, np.array(after)


def _bits(prompt: Prompt, winner: int) -> tuple[tuple[str, ...], int, np.ndarray]:
    after = []
    for bits in counted(BITS):
        changes = [WeightEdit(name, "round", float(bits)) for name in matrices_of(prompt.bundle.model)]
        codes = tuple(code_of(change) for change in changes)
        after.append(np.exp(intervene(prompt=prompt, changes=codes, answer=winner, controls=0).after))
    return tuple(map(str, BITS)), 0, np.array(after)


_MEASURED = {"head": _heads, "word": _words, "layer": _layers, "bits": _bits}
