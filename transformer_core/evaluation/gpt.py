"""How well a model predicts a text: nats per token and per byte, and perplexity.

Radford et al. 2018, eq. 1 (with everything before the token in its window as context).
"""

import gzip
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from transformer_core.bundle import Bundle
from transformer_core.text import EOS_ID, PAD_ID, Tokenizer
from transformer_core.training.batching import in_turn, padded

LARGEST_TEXT = 200_000_000


def read_text(path: Path) -> str:
    """Return a text file in UTF-8, plain or gzipped.

    Raises:
        ValueError: it is not UTF-8, is broken, or is too long.
        OSError: it cannot be opened.
    """
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            raw = file.read(LARGEST_TEXT + 1)
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path.name}: the gzip data is broken: {error}") from None
    if len(raw) > LARGEST_TEXT:
        raise ValueError(f"{path.name} is longer than {LARGEST_TEXT:,} bytes")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8: {error.reason} at byte {error.start}") from None


def poem_rows(tokenizer: Tokenizer, poems: Sequence[str]) -> list[list[int]]:
    """Return the ids of each poem with [EOS] at its end."""
    return [[*ids, EOS_ID] for ids in tokenizer.ids_of(poems)]


@torch.inference_mode()
def measure_poems(bundle: Bundle, poems: Sequence[str]) -> dict[str, Any]:
    """Measure how well a GPT predicts each character of poems but the first of each, their ends included.

    Args:
        bundle: of a Gpt that reads a whole poem.
        poems: each is read on its own.

    Returns:
        loss_nats (a character), characters.
    """
    rows, device = poem_rows(bundle.tokenizer, poems), bundle.device
    nats, count = 0.0, 0
    for places in in_turn([len(row) for row in rows]):
        batch = padded([rows[place] for place in places], PAD_ID).to(device)
        logits, words = (
            bundle.model(batch[:, :-1]).cpu().double(),
            batch[:, 1:].cpu(),
        )  # (batch, pos, vocab), (batch, pos)
        nats += float(F.cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=PAD_ID, reduction="sum"))
        count += int((words != PAD_ID).sum())
    return {"loss_nats": round(nats / count, 4), "characters": count}


@torch.inference_mode()
def measure_text(bundle: Bundle, text: str, *, batch_size: int = 32) -> dict[str, Any]:
    """Measure how well a language model predicts each token of a text from those before it.

    The text is cut into windows of max_len + 1 tokens that share one token, so that every token but the first is
    predicted once; at the start of a window little context is there, and that counts.

    Args:
        bundle: of a Gpt or a RecurrentLm, which starts each window with a fresh state.
        text: of at least two tokens.
        batch_size: windows at once; it changes speed and memory only.

    Returns:
        loss_nats (a token), nats_a_byte (of the text in UTF-8), perplexity (exp of loss_nats), accuracy, tokens.

    Raises:
        ValueError: the bundle is of another kind, or the text too short.
    """
    bundle.must_ask("next")
    ids = torch.tensor(bundle.tokenizer.encode(text).ids)
    if len(ids) < 2:
        raise ValueError(f"text has {len(ids)} tokens; at least 2 are needed")
    device, width = bundle.device, bundle.config.max_len
    loss = right = 0.0
    n_whole = (len(ids) - 1) // width
    windows = list(ids[: n_whole * width + 1].unfold(0, width + 1, width).split(batch_size)) if n_whole else []
    if (rest := ids[n_whole * width :]).numel() > 1:  # it begins with the windows' last token
        windows.append(rest[None])
    for batch in windows:
        window = batch.to(device)  # (batch, pos + 1)
        logits = bundle.model(window[:, :-1]).cpu().double()  # (batch, pos, vocab)
        words = batch[:, 1:]
        loss += float(F.cross_entropy(logits.flatten(0, 1), words.flatten(), reduction="sum"))
        right += float((logits.argmax(-1) == words).sum())
    count = len(ids) - 1
    return {
        "loss_nats": round(loss / count, 4),
        "nats_a_byte": round(loss / len(text.encode()), 4),
        "perplexity": round(math.exp(loss / count), 4),
        "accuracy": round(right / count, 6),
        "tokens": count,
    }
