"""Layer by layer: what the masked-word head would say if the encoder ended earlier.

The head is asked for vectors that it was never trained on, as in nostalgebraist 2020 (the logit lens); a pre-norm
model's vectors go through its last normalisation first, since the head never saw any others. A tuned lens maps them
to the last layer's before (Belrose et al. 2023).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.bert.masked_words import (
    MOST_TOKENS_AT_ONCE,
    bert_of,
    each_masked,
    encode_masks,
    hidden_text,
    ranks_of,
    tensors,
)
from transformer_core.analysis.lens import Through, choices, read_out, require_lens, settled
from transformer_core.bundle import Bundle
from transformer_core.probe import Probe
from transformer_core.progress import counted
from transformer_core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class ByLayer:
    """What the head says of one mask from each stage of the encoder: after the embedding, then after each layer.

    Shapes:
        word_ids: (word); probabilities, ranks: (stage, word); best_ids, best_probabilities: (stage, guess)

    Args:
        words: labels of the words that are followed: the last stage's likeliest, then the true one if it is none of
            them.
        true_word: the place of the true word among them; None where the text itself has the mask.
        best_labels: of the likeliest words at each stage.
        settled: the first stage from which on the first of `words` is likeliest to the end.
    """

    words: tuple[str, ...]
    word_ids: np.ndarray
    probabilities: np.ndarray
    ranks: np.ndarray
    true_word: int | None
    best_ids: np.ndarray
    best_labels: tuple[tuple[str, ...], ...]
    best_probabilities: np.ndarray
    settled: int


@dataclass(frozen=True, eq=False)
class EachByLayer:
    """The same for every token of a text, each hidden by itself.

    Shapes:
        places, settled: (token); probabilities, ranks, of the answer, and first_probabilities: (stage, token)

    Args:
        labels: of the tokens.
        firsts: the likeliest word by stage and token, with `first_probabilities`.
        answers: the likeliest word at the last stage.
        settled: the first stage from which on the answer is likeliest to the end.
    """

    places: np.ndarray
    labels: tuple[str, ...]
    firsts: tuple[tuple[str, ...], ...]
    first_probabilities: np.ndarray
    answers: tuple[str, ...]
    probabilities: np.ndarray
    ranks: np.ndarray
    settled: np.ndarray


def _scores(
    bundle: Bundle,
    rows: Sequence[Sequence[int]],
    places: Sequence[int],
    segments: Sequence[int],
    through: Through,
) -> Tensor:
    """Return what the head makes of one place of each row, at each stage.

    Shapes:
        returns: (row, stage, vocab)
    """
    sites = bundle.reader.stages
    probe = Probe(sites)
    ids, segment_ids = tensors(bundle, rows, segments)
    bert_of(bundle).encoder(ids, segment_ids=segment_ids, probe=probe.at("encoder"))
    chosen = torch.arange(len(ids))
    streams = (probe.trace[site][chosen, list(places)] for site in sites)  # (row, d_model) each
    return torch.stack([read_out(bundle, x, stage, through) for stage, x in enumerate(streams)], dim=1).cpu()


@torch.inference_mode()
def by_layer(
    *, prompt: Prompt, hidden: tuple[int, ...], place: int, top: int = 5, through: Through = "logit"
) -> ByLayer:
    """Follow the guesses behind one mask from stage to stage.

    Args:
        hidden: places of tokens to hide, beside every [MASK] that the text spells out.
        place: of the mask to look at, one of those.
        top: how many of the last stage's words to follow, and how many of each stage to name.
        through: as of read_out.

    Raises:
        ValueError: there is no mask at the place, a place cannot be hidden, or the model has no tuned lens.
    """
    require_lens(prompt.bundle, through)
    read = hidden_text(prompt, hidden, place=place)
    logits = _scores(prompt.bundle, [read.masked.ids], [place], read.masked.segment_ids, through)[0]  # (stage, vocab)
    probabilities = logits.softmax(-1)
    best = logits.topk(min(top, logits.shape[1])).indices  # the probabilities of close ones may be equal
    words, true_id = best[-1].tolist(), read.true_ids[read.places.index(place)]
    if true_id is not None and true_id not in words:
        words.append(true_id)
    stages, label = len(logits), prompt.bundle.tokenizer.label_of
    ranks = torch.stack([ranks_of(logits, torch.full((stages,), word)) for word in words], dim=1)
    return ByLayer(
        words=tuple(map(label, words)),
        word_ids=np.array(words),
        probabilities=probabilities[:, words].numpy(),
        ranks=ranks.numpy(),
        true_word=None if true_id is None else words.index(true_id),
        best_ids=best.numpy(),
        best_labels=tuple(tuple(map(label, row)) for row in best.tolist()),
        best_probabilities=probabilities.gather(1, best).numpy(),
        settled=int(settled(ranks[:, 0] == 1)),
    )


@torch.inference_mode()
def each_by_layer(*, prompt: Prompt, through: Through = "logit") -> EachByLayer:
    """Hide each token of a text by itself and follow the answer from stage to stage.

    Args:
        through: as of read_out.

    Raises:
        ValueError: the text has no token of its own, the vocabulary has no [MASK], or the model has no tuned lens.
    """
    require_lens(prompt.bundle, through)
    bundle, encoding = prompt.bundle, encode_masks(prompt)
    places, rows = each_masked(encoding, bundle.tokenizer)
    step = bundle.reader.at_once(len(bundle.reader.stages), MOST_TOKENS_AT_ONCE // len(encoding))
    found = []
    for start in counted(range(0, len(rows), step)):
        part = slice(start, start + step)
        logits = _scores(bundle, rows[part], places[part], encoding.segment_ids, through)  # (row, stage, vocab)
        answer = logits[:, -1:].argmax(-1).expand(-1, logits.shape[1])  # (row, stage)
        found.append(choices(logits, answer))
    first, first_probability, probability, rank = (torch.cat(parts).T for parts in zip(*found, strict=True))
    label = bundle.tokenizer.label_of
    return EachByLayer(
        places=np.array(places),
        labels=tuple(encoding.labels[place] for place in places),
        firsts=tuple(tuple(map(label, row)) for row in first.tolist()),
        first_probabilities=first_probability.numpy(),
        answers=tuple(map(label, first[-1].tolist())),
        probabilities=probability.numpy(),
        ranks=rank.numpy(),
        settled=settled(rank == 1).numpy(),
    )
