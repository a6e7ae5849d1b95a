"""Where a decoder looks for each word, recurrent and Transformer, and what it writes with one context for all words.

Bahdanau et al. 2015, sections 1, 3.1 and 5.2.1, figure 3; Vaswani et al. 2017, section 3.2.3; one vector for all target
words: Cho et al. 2014, section 2.2.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer_core.analysis.translation.greedy_steps import Source, source_of
from transformer_core.bundle import Bundle
from transformer_core.generation import greedy
from transformer_core.models.recurrent import Seq2Seq
from transformer_core.probe import Probe, capture
from transformer_core.prompt import Prompt

MOST_WORDS = 64


@dataclass(frozen=True, eq=False)
class WordAlignment:
    """How a model looked at the source while it wrote.

    Shapes:
        weights: (layer, target_pos, source_pos), the mean over heads; each row sums to 1
        by_head: (layer, head, target_pos, source_pos)
        probabilities: (target_pos,), of each word given those before it

    Args:
        source: tokens that were read, special ones included.
        target: tokens that were written, the end token included; row i of the weights is of the pass that chose it.
        target_ids: the same as ids.
        translation: as text.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    target_ids: tuple[int, ...]
    translation: str
    weights: np.ndarray
    by_head: np.ndarray
    probabilities: np.ndarray


def word_alignment(*, prompt: Prompt, most: int = MOST_WORDS, target: str | None = None) -> WordAlignment:
    """Translate a sentence greedily and return where each word of it looked.

    Args:
        prompt: to a seq2seq with attention, which has one layer and one head, or a translation.
        most: tokens that are written at most.
        target: a translation to read in place of the model's own.

    Raises:
        ValueError: the bundle is of another kind or has no attention, or its tokenizer has no [BOS] and [EOS].
    """
    bundle = prompt.bundle
    if isinstance(bundle.model, Seq2Seq) and bundle.model.config.attention is None:
        raise ValueError(f"bundle={bundle.name!r} has attention=None, so that it looks nowhere; it must have attention")
    source = source_of(prompt)
    written = written_by(source, most) if target is None else given_to(source, bundle, target, most)
    return _looked_at(bundle, source, written)


def words_read(*, prompt: Prompt, most: int = MOST_WORDS) -> tuple[int, ...]:
    """Translate a sentence greedily and return what the decoder read: the start, then every word but the last.

    Args:
        prompt: to a seq2seq or a translation.
        most: tokens that are written at most.

    Raises:
        ValueError: the bundle is of another kind, or its tokenizer has no [BOS] and [EOS].
    """
    source = source_of(prompt)
    return (source.bos_id, *written_by(source, most)[:-1])


def written_by(source: Source, most: int) -> list[int]:
    """Return a translation written greedily, in ids."""
    steps = greedy(source.model, source.ids, bos_id=source.bos_id, eos_id=source.eos_id, most=most)
    return [step.token_id for step in steps]


def given_to(source: Source, bundle: Bundle, target: str, most: int) -> list[int]:
    """Return the ids of a translation that is given, with the end token."""
    special = (source.bos_id, source.eos_id)
    ids = bundle.of_target.encode(target, max_len=most).ids
    return [*(id_ for id_ in ids if id_ not in special), source.eos_id]


def _looked_at(bundle: Bundle, source: Source, written: list[int]) -> WordAlignment:
    read = torch.tensor([[source.bos_id, *written[:-1]]], device=source.ids.device)  # (1, target_pos)
    sites = "decoder.alignment.weights" if bundle.kind == "seq2seq" else "decoder.layer*.cross_attention.weights"
    logits, trace = capture(bundle.model, source.ids, read, sites=(sites,))
    by_head = np.stack([tensor[0].cpu().double().numpy() for _, tensor in trace.items()])
    chosen = logits[0].cpu().double().softmax(-1)[range(len(written)), written]  # (target_pos,)
    tokenizer = bundle.tokenizer
    return WordAlignment(
        source=source.encoding.labels,
        target=tokenizer.labels_of(written),
        target_ids=tuple(written),
        translation=tokenizer.decode(written),
        weights=by_head.mean(1),
        by_head=by_head,
        probabilities=chosen.numpy(),
    )


@dataclass(frozen=True, eq=False)
class BothAlignments:
    """The same words, written by two models, and how alike they look at the source.

    Shapes:
        difference: (layer of other, target_pos), the share of weight that would have to move from one row to make it
            the other's, in [0, 1]
        agree: (layer of other,), the share of target words for which both look most at the same source token

    Args:
        bundle, other: their alignments, of the same target.
        own: the translation that `bundle` writes by itself; others: the one that `other` writes.
    """

    bundle: WordAlignment
    other: WordAlignment
    own: str
    others: str
    difference: np.ndarray
    agree: np.ndarray


def compared(weights: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how far apart rows of weights are, and for which share of them the greatest weight is at the same place.

    Shapes:
        weights, others: (..., target_pos, source_pos); returns: (..., target_pos) and (...,), both in [0, 1]
    """
    same = others.argmax(-1) == weights.argmax(-1)  # (..., target_pos)
    return np.abs(others - weights).sum(-1) / 2, same.mean(-1)


def both_alignments(
    *, prompt: Prompt, other: Bundle, most: int = MOST_WORDS, target: str | None = None
) -> BothAlignments:
    """Let two models look at the same source for the same words.

    Args:
        prompt: to a seq2seq with attention.
        other: a translation, with the same tokenizer.
        most: as in word_alignment.
        target: the words; by default those that `bundle` writes.

    Raises:
        ValueError: as word_alignment, or the two cut the sentence differently.
    """
    own = word_alignment(prompt=prompt, most=most)
    others = word_alignment(prompt=replace(prompt, bundle=other), most=most)
    words = own.translation if target is None else target
    ours, theirs = (
        word_alignment(prompt=replace(prompt, bundle=model), most=most, target=words)
        for model in (prompt.bundle, other)
    )
    if (ours.source, ours.target) != (theirs.source, theirs.target):
        raise ValueError(
            f"bundle={prompt.bundle.name!r} and other={other.name!r} cut the sentence differently; "
            "they must share a tokenizer"
        )
    difference, agree = compared(ours.weights, theirs.weights)
    return BothAlignments(ours, theirs, own.translation, others.translation, difference, agree)


WEIGHTS = "decoder.alignment.weights"


@dataclass(frozen=True, eq=False)
class OneVector:
    """Two translations of a sentence by one model: with its attention, and with one context for all words.

    Args:
        source: tokens that were read, special ones included.
        looking, blind: the translations.
        looking_words, blind_words: their tokens, without the end.
        kept: words that both have in the same order, as a share of the longer of the two.
        n_summary: numbers that one vector holds, whatever the length of the sentence.
        n_annotations: numbers that attention may choose from: one vector per token.
    """

    source: tuple[str, ...]
    looking: str
    blind: str
    looking_words: tuple[str, ...]
    blind_words: tuple[str, ...]
    kept: float
    n_summary: int
    n_annotations: int


def one_vector(*, prompt: Prompt, most: int = MOST_WORDS) -> OneVector:
    """Translate greedily, once as trained and once with the mean of all annotations as the context of every word.

    The model was trained with attention; one that never had it would have learned to encode more in its summary.

    Args:
        prompt: to a seq2seq with attention.
        most: tokens that are written at most.

    Raises:
        ValueError: the bundle is of another kind; or as word_alignment.
    """
    source, tokenizer = source_of(prompt, "seq2seq"), prompt.bundle.tokenizer
    looking, config = word_alignment(prompt=prompt, most=most), source.model.config
    written = _blind(source, min(most, config.max_len - 1))
    mine = tuple(_words(looking.target, looking.target_ids, source.eos_id))
    theirs = tuple(_words(tokenizer.labels_of(written), written, source.eos_id))
    return OneVector(
        source=source.encoding.labels,
        looking=looking.translation,
        blind=tokenizer.decode(written),
        looking_words=mine,
        blind_words=theirs,
        kept=_in_common(mine, theirs) / max(len(mine), len(theirs), 1),
        n_summary=config.d_memory,
        n_annotations=config.d_memory * len(source.encoding),
    )


@torch.inference_mode()
def _blind(source: Source, most: int) -> list[int]:
    """Write greedily with weights that are the same for every source position."""
    probe = Probe((), edits={WEIGHTS: lambda weights: torch.full_like(weights, 1 / weights.shape[-1])})
    place, token, written = source.model.start(source.ids), source.bos_id, []
    while len(written) < most and token != source.eos_id:
        logits, place = source.model.read(torch.tensor([[token]], device=source.ids.device), place, probe=probe)
        token = int(logits[0, -1].argmax())
        written.append(token)
    return written


def _in_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for word in first:
        before = row
        row = [0]
        for place, other in enumerate(second):
            row.append(before[place] + 1 if word == other else max(before[place + 1], row[place]))
    return row[-1]


def _words(labels: Iterable[str], ids: Iterable[int], eos_id: int) -> list[str]:
    return [label for label, id_ in zip(labels, ids, strict=True) if id_ != eos_id]
