"""How often a classifier is right, and its cross entropy."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F

from transformer_core.bundle import Bundle
from transformer_core.examples import Example
from transformer_core.text import Encoding, make_batch

Measures = dict[str, Any]
BATCHES_AT_ONCE = 32
DEFAULT_BATCH_SIZE = 32


@torch.inference_mode()
def measure_classifier(
    bundle: Bundle, examples: Iterable[Example], *, batch_size: int = DEFAULT_BATCH_SIZE
) -> Measures:
    """Measure how well a classifier classifies examples; longer texts are cut to the model's max_len.

    Args:
        bundle: of a classifier.
        examples: read as a stream.
        batch_size: texts at once; it changes speed and memory only.

    Returns:
        accuracy in [0, 1], loss_nats (cross entropy an example), truncated (texts that were cut), examples.

    Raises:
        ValueError: there are no examples.
    """
    correct = truncated = count = 0
    loss = 0.0
    stream = iter(examples)
    while chunk := list(islice(stream, batch_size * BATCHES_AT_ONCE)):
        encodings = bundle.tokenizer.encode_batch([e.text for e in chunk], max_len=bundle.config.max_len)
        by_length = sorted(range(len(chunk)), key=lambda place: len(encodings[place]))
        for start in range(0, len(chunk), batch_size):
            places = by_length[start : start + batch_size]
            logits = class_logits(bundle, [encodings[place] for place in places])  # (batch, class)
            labels = torch.tensor([chunk[place].label for place in places])
            correct += int((logits.argmax(-1) == labels).sum())
            loss += float(F.cross_entropy(logits, labels, reduction="sum"))
        truncated += sum(encoding.truncated > 0 for encoding in encodings)
        count += len(chunk)
    if not count:
        raise ValueError("examples are none; at least one is needed")
    accuracy, loss_nats = round(correct / count, 6), round(loss / count, 4)
    return {"accuracy": accuracy, "loss_nats": loss_nats, "truncated": truncated, "examples": count}


def class_logits(bundle: Bundle, encodings: list[Encoding]) -> torch.Tensor:
    """Return a classifier's logits of some texts, read together. # (batch, class)"""
    batch = make_batch(encodings, padding=bundle.config.padding)
    token_ids = batch.token_ids.to(bundle.device)
    return bundle.model(token_ids).cpu().double()
