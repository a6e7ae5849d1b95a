"""Kept logits: a text is read once, and its logits are cached for all questions about its next words.

Temperature, top-k and top-p act on logits alone, so that changing them needs no new forward pass.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.models import Gpt
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

FRAGMENTS = 3  # tokens back that can hold the beginning of a character which a token ends


@dataclass(frozen=True, eq=False)
class Kept:
    """What a language model made of one text.

    Shapes:
        logits: (pos, vocab); row i scores the token after token i

    Args:
        ids, labels: one per token.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    logits: Tensor


def gpt_of(bundle: Bundle) -> Gpt:
    """Return a bundle's model; ValueError where it is not a GPT."""
    return bundle.model_as(Gpt)


def language_model_of(bundle: Bundle) -> Gpt | RecurrentLm:
    """Return a bundle's model, which foresees each token from those before it; ValueError where it does not."""
    return bundle.model_as(Gpt, RecurrentLm)


def ids_on_device(model: Gpt | RecurrentLm, ids: Sequence[int]) -> Tensor:
    """Return ids as a batch of one, where the model is.  # (1, pos)"""
    return torch.tensor([list(ids)], device=next(model.parameters()).device)


@lru_cache(maxsize=4)
@torch.inference_mode()
def kept_logits(prompt: Prompt) -> Kept:
    """Read a text, or return what is kept of it: of the last four that were asked for.

    Raises:
        ValueError: the bundle is no language model, or the text has no token.
    """
    model = language_model_of(prompt.bundle)
    encoding = prompt.encoding
    logits = model(ids_on_device(model, encoding.ids))[0].float().cpu()  # (pos, vocab)
    return Kept(encoding.ids, encoding.labels, logits)


def logits_at(prompt: Prompt, place: int) -> tuple[Kept, Tensor]:
    """Return what is kept of a text, and the scores of the token at a place.

    Shapes:
        returns: the second is (vocab,)

    Args:
        place: how many tokens have been read; the text's own number of tokens asks what comes after it.

    Raises:
        ValueError: place is out of range.
    """
    kept = kept_logits(prompt)
    if not 1 <= place <= len(kept.ids):
        raise ValueError(f"place={place} must be from 1 to {len(kept.ids)}: the first token has nothing before it")
    return kept, kept.logits[place - 1]


def labels_after(tokenizer: Tokenizer, before: Sequence[int], ids: Iterable[int]) -> tuple[str, ...]:
    """Return the label of each of these tokens where it follows what stands before it.

    A part of a character is labelled by the character that it completes; an id that the vocabulary lacks, by itself.
    """
    context = list(before[-FRAGMENTS:])
    known = tokenizer.vocab_size
    return tuple(tokenizer.labels_of([*context, id_])[-1] if id_ < known else f"<{id_}>" for id_ in map(int, ids))


def labels_at(tokenizer: Tokenizer, ids: Sequence[int], row: Sequence[int], *, first: int = 1) -> tuple[str, ...]:
    """Return the label of each token of a row where it follows a text's beginning: the first so many of its tokens,
    then one more for each.
    """
    return tuple(labels_after(tokenizer, ids[:place], [id_])[0] for place, id_ in enumerate(row, first))


def surprisal_bits(logits: Tensor, ids: Tensor) -> Tensor:
    """Return -log2 p of one token of each row, in bits; logits: (row, vocab), ids, returns: (row,)."""
    return -logits.log_softmax(-1).gather(1, ids[:, None])[:, 0] / math.log(2)


def entropy_bits(probabilities: Tensor) -> Tensor:
    """Return -sum p log2 p over the last axis (Shannon 1948), in bits; what has no chance adds nothing.

    Shapes:
        probabilities: (..., vocab); returns: (...)
    """
    return torch.special.entr(probabilities).sum(-1) / torch.log(torch.tensor(2.0))
