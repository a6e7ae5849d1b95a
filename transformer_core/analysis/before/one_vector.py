"""A decoder without attention: what its one context vector holds, and what a trained model writes without looking.

Cho et al. 2014, section 2.2 (one vector for all target words); Bahdanau et al. 2015, sections 1 and 3.1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.analysis.before.alignments import MOST_WORDS, word_alignment
from transformer_core.bundle import Bundle
from transformer_core.models.recurrent import Seq2Seq
from transformer_core.probe import Probe

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


def one_vector(*, bundle: Bundle, text: str, n_tokens: int, most: int = MOST_WORDS) -> OneVector:
    """Translate greedily, once as trained and once with the mean of all annotations as the context of every word.

    The model was trained with attention; one that never had it would have learned to encode more in its summary.

    Args:
        bundle: a seq2seq with attention.
        n_tokens: most tokens of the text to read.
        most: tokens that are written at most.

    Raises:
        ValueError: the bundle is of another kind; or as word_alignment.
    """
    model, tokenizer = bundle.model, bundle.tokenizer
    if not isinstance(model, Seq2Seq):
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a seq2seq")
    looking = word_alignment(bundle=bundle, text=text, n_tokens=n_tokens, most=most)
    encoding = tokenizer.encode(text, max_len=min(n_tokens, model.config.max_len))
    source_ids = torch.tensor([encoding.ids], device=next(model.parameters()).device)
    assert tokenizer.bos_id is not None
    written = _blind(model, source_ids, tokenizer.bos_id, tokenizer.eos_id, min(most, model.config.max_len - 1))
    mine = tuple(_words(looking.target, looking.target_ids, tokenizer.eos_id))
    theirs = tuple(_words(tokenizer.labels_of(written), written, tokenizer.eos_id))
    return OneVector(
        source=encoding.labels,
        looking=looking.translation,
        blind=tokenizer.decode(written),
        looking_words=mine,
        blind_words=theirs,
        kept=_in_common(mine, theirs) / max(len(mine), len(theirs), 1),
        n_summary=model.config.d_memory,
        n_annotations=model.config.d_memory * len(encoding),
    )


@torch.inference_mode()
def _blind(model: Seq2Seq, source_ids: Tensor, bos_id: int, eos_id: int | None, most: int) -> list[int]:
    """Write greedily with weights that are the same for every source position."""
    probe = Probe((), edits={WEIGHTS: lambda weights: torch.full_like(weights, 1 / weights.shape[-1])})
    place, token, written = model.start(source_ids), bos_id, []
    while len(written) < most and token != eos_id:
        logits, place = model.read(torch.tensor([[token]], device=source_ids.device), place, probe=probe)
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


def _words(labels: Iterable[str], ids: Iterable[int], eos_id: int | None) -> list[str]:
    return [label for label, id_ in zip(labels, ids, strict=True) if id_ != eos_id]
