"""Copying: whether what a head passes on raises the words that it read, by the eigenvalues of its weights alone.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "Detecting copying heads": the matrix
W_U W_O W_V W_E takes each word to the scores of all words; where its eigenvalues are positive, a word raises itself.
It is as wide as the vocabulary, and its eigenvalues but for zeros are those of W_V (W_E W_U) W_O, which is as wide as
a head. Departure: the normalisations before and after are left out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer_core.analysis.lab.heads_off import attentions
from transformer_core.bundle import Bundle

MOST_ROWS = 32_768  # words of the vocabulary that the sum is over, spread evenly


@dataclass(frozen=True, eq=False)
class Copying:
    """The sign of each head's eigenvalues.

    Shapes:
        score: (head,), over heads_off.all_heads: sum of the eigenvalues / sum of their absolute values, in [-1, 1]; nan
            where the head reads other words than the model scores, or none are scored

    Args:
        rows: words of the vocabulary that were summed over; there: how many it has.
    """

    score: np.ndarray
    rows: int
    there: int


def copying_score(value: Tensor, words: Tensor, output: Tensor) -> float:
    """Return sum(eigenvalues) / sum(|eigenvalues|) of W_V (W_E W_U) W_O; 0 where all are 0.

    Shapes:
        value: (d_head, d_model), W_V; words: (d_model, d_model), W_E W_U; output: (d_model, d_head), W_O
    """
    found = torch.linalg.eigvals(value.double() @ words.double() @ output.double())
    size = float(found.abs().sum())
    return float(found.real.sum()) / size if size > 0 else 0.0


def copying_scores(*, bundle: Bundle) -> Copying:
    """Measure every head of a stack that reads the words that the model scores: a gpt's, or a translation's decoder.

    Args:
        bundle: of any kind; of others, and of other stacks, the scores are not numbers.
    """
    model: Any = bundle.model
    by_kind, n_heads = attentions(bundle), bundle.config.n_heads
    score = np.full(sum(map(len, by_kind.values())) * n_heads, np.nan)
    if bundle.kind not in ("gpt", "translation"):
        return Copying(score, 0, 0)
    words, rows, there = _through_words(model)
    start = 0
    for kind, scopes in by_kind.items():
        for layer in range(len(scopes)):
            for head in range(n_heads):
                if kind == "decoder":
                    attention = model.decoder.stack.layers[layer].self_attention
                    score[start] = copying_score(*_head(attention, head, words))
                start += 1
    return Copying(score, rows, there)


@torch.no_grad()
def _through_words(model: Any) -> tuple[Tensor, int, int]:
    """Return W_E W_U summed over words, how many these are, and how many there are. # (d_model, d_model)"""
    embedding = model.decoder.embedding
    read, scored = embedding.token.weight, model.output.proj.weight  # (vocab, d_embedding), (vocab, d_model)
    step = -(-len(read) // MOST_ROWS)
    some, others = read[::step].float(), scored[::step].float()
    words = some.T @ others  # (d_embedding, d_model)
    if embedding.stream_proj is not None:
        words = embedding.stream_proj.weight.float() @ words
    return words, len(some), len(read)


@torch.no_grad()
def _head(attention: nn.Module, head: int, words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return W_V, W_E W_U and W_O of one head; without projections the head's own coordinates."""
    of: Any = attention
    d_head, shared = of.d_head, head * of.n_kv_heads // of.n_heads
    key = of.query_proj if of.key_proj is None else of.key_proj
    value = key if of.value_proj is None else of.value_proj
    own, kept = (slice(one * d_head, (one + 1) * d_head) for one in (head, shared))
    same = torch.eye(len(words), device=words.device)
    into = same if value is None else value.weight.float()
    out = same if of.output_proj is None else of.output_proj.weight.float()
    return into[kept], words, out[:, own]
