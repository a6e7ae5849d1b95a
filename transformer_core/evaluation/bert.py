"""How well a BERT guesses hidden words, and tells whether two sentences belong together.

Devlin et al. 2019, section 3.1.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from transformer_core.bundle import Bundle
from transformer_core.models import Bert
from transformer_core.text import Encoding, make_batch
from transformer_core.untrusted.tables.labelled import read_records, require_label, require_text

HIDDEN_SHARE = 0.15
TOGETHER = {"0": 0, "1": 1}


class SentencePair(NamedTuple):
    """Two sentences, and whether they belong together."""

    first: str
    second: str
    together: bool


def read_sentence_pairs(path: Path) -> list[SentencePair]:
    """Return the pairs of a .csv or .jsonl (or .gz of one) with first, second and label: 1 = they belong together.

    Raises:
        ValueError: with the file, the line and what is wrong with it.
    """
    return [
        SentencePair(
            require_text(first, path, line),
            require_text(second, path, line),
            bool(require_label(label, TOGETHER, path, line)),
        )
        for line, (first, second, label) in read_records(path, ("first", "second", "label"))
    ]


def write_sentence_pairs(path: Path, pairs: Sequence[SentencePair]) -> None:
    """Write a .jsonl that read_sentence_pairs reads back to the same pairs."""
    rows = ({"first": pair.first, "second": pair.second, "label": int(pair.together)} for pair in pairs)
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


def _by_length(encodings: Sequence[Encoding], batch_size: int) -> Iterator[list[int]]:
    order = sorted(range(len(encodings)), key=lambda place: len(encodings[place]))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


@torch.inference_mode()
def measure_hidden_words(
    bundle: Bundle, sentences: Sequence[str], *, share: float = HIDDEN_SHARE, seed: int = 0, batch_size: int = 32
) -> dict[str, Any]:
    """Hide tokens of each sentence, every one by [MASK], and see whether they are guessed.

    Args:
        bundle: of a Bert.
        sentences: each is read on its own; longer ones are cut to the model's max_len.
        share: probability of hiding a token that is not a special one.
        seed: with the sentence's number, it fixes what is hidden, however sentences are batched.
        batch_size: sentences at once; it changes speed and memory only.

    Returns:
        top1 and top5 (share of hidden tokens that are the first, or among the first five, of the guesses), loss_nats (a
        hidden token), hidden (their number), sentences.

    Raises:
        ValueError: the bundle is of another kind or has no mask token, or nothing was hidden.
    """
    bundle.model_as(Bert)
    if bundle.tokenizer.mask_id is None:
        raise ValueError(f"bundle={bundle.name!r} has no mask token")
    encodings = bundle.tokenizer.encode_batch(sentences, max_len=bundle.config.max_len)
    device = bundle.device
    first = five = hidden = 0
    loss = 0.0
    for places in _by_length(encodings, batch_size):
        batch = make_batch([encodings[place] for place in places], padding=bundle.config.padding)
        chosen = torch.zeros_like(batch.mask)  # (batch, pos)
        for row, place in enumerate(places):
            own = ~np.array(encodings[place].special)
            draws = np.random.default_rng((seed, place)).random(len(own))
            chosen[row, : len(own)] = torch.from_numpy(own & (draws < share))
        corrupted = batch.token_ids.masked_fill(chosen, bundle.tokenizer.mask_id).to(device)
        logits = bundle.model(corrupted).mlm_logits[chosen.to(device)].cpu().double()  # (chosen, vocab)
        words = batch.token_ids[chosen]  # (chosen,)
        ranked = logits.topk(min(5, logits.shape[-1])).indices == words[:, None]  # (chosen, 5)
        first += int(ranked[:, :1].sum())
        five += int(ranked.sum())
        loss += float(F.cross_entropy(logits, words, reduction="sum"))
        hidden += len(words)
    if not hidden:
        raise ValueError(f"sentences={len(sentences)} left nothing to hide; at least one ordinary token is needed")
    return {
        "top1": round(first / hidden, 6),
        "top5": round(five / hidden, 6),
        "loss_nats": round(loss / hidden, 4),
        "hidden": hidden,
        "sentences": len(sentences),
    }


@torch.inference_mode()
def measure_sentence_pairs(bundle: Bundle, pairs: Sequence[SentencePair], *, batch_size: int = 32) -> dict[str, Any]:
    """See whether a BERT tells pairs that belong together from others.

    Args:
        bundle: of a Bert with segment embeddings.
        pairs: longer ones are cut to the model's max_len, the longer sentence first.
        batch_size: pairs at once; it changes speed and memory only.

    Returns:
        accuracy in [0, 1], loss_nats (a pair), pairs.

    Raises:
        ValueError: the bundle is of another kind or knows no second segment, or there are no pairs.
    """
    bundle.model_as(Bert)
    if not pairs:
        raise ValueError("pairs are none; at least one is needed")
    firsts, seconds, _ = zip(*pairs, strict=True)
    encodings = bundle.tokenizer.encode_batch(firsts, seconds, max_len=bundle.config.max_len)
    device = bundle.device
    correct, loss = 0, 0.0
    for places in _by_length(encodings, batch_size):
        batch = make_batch([encodings[place] for place in places], padding=bundle.config.padding)
        output = bundle.model(batch.token_ids.to(device), segment_ids=batch.segment_ids.to(device))
        logits = output.nsp_logits.cpu().double()  # (batch, 2)
        classes = torch.tensor([int(not pairs[place].together) for place in places])
        correct += int((logits.argmax(-1) == classes).sum())
        loss += float(F.cross_entropy(logits, classes, reduction="sum"))
    return {
        "accuracy": round(correct / len(pairs), 6),
        "loss_nats": round(loss / len(pairs), 4),
        "pairs": len(pairs),
    }
