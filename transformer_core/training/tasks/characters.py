"""The next character: a GPT learns to continue one text.

Radford et al. 2018, section 3.1.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import TOKENS_AT_ONCE
from transformer_core.training.objectives import next_words
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.task import Task, both_parts, word_measures

HELD_OUT_SHARE = 0.1
QUICK_WINDOWS = 48
PROMPT_LENGTH = 24


def _windows(ids: Tensor, width: int, count: int) -> Tensor:
    """Return up to `count` windows (window, pos) that are evenly spread over the text."""
    count = max(1, min(count, len(ids) // width))
    starts = torch.linspace(0, len(ids) - width, count).long()
    return ids[starts[:, None] + torch.arange(width)]


def character_task(spec: RunSpec, text: str, device: torch.device) -> Task:
    """Return the task of guessing each next character; the last tenth of the text is held out.

    An epoch is `spec.data.examples` windows that begin at random places.

    Args:
        spec: the run's.
        text: what is learned.
        device: of the batches.

    Raises:
        ValueError: the text is too short for one held-out window.
    """
    training, width = spec.training, spec.model.max_len
    cut = round(len(text) * (1 - HELD_OUT_SHARE))
    if len(text) - cut <= width + 1:
        raise ValueError(
            f"text of {len(text):,} characters is too short for windows of max_len={width}: "
            f"{round((width + 2) / HELD_OUT_SHARE):,} are needed, or a smaller max_len"
        )
    tokenizer = Tokenizer.train("character", [text[:cut]], vocab_size=8_000, min_frequency=1, template="none")
    config = replace(spec.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None, pad_id=PAD_ID)
    ids = {
        "train": torch.tensor(tokenizer.encode(text[:cut]).ids),
        "held_out": torch.tensor(tokenizer.encode(text[cut:]).ids),
    }
    steps_per_epoch = max(1, spec.data.examples // training.batch_size)

    def batches(epoch: int) -> Iterator[Tensor]:
        rng = np.random.default_rng((training.seed, epoch))
        for _ in range(steps_per_epoch):
            starts = torch.from_numpy(rng.integers(0, len(ids["train"]) - width, training.batch_size))
            yield ids["train"][starts[:, None] + torch.arange(width + 1)].to(device)

    def scored(model: nn.Module, windows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        for chunk in windows.to(device).split(max(1, TOKENS_AT_ONCE // width)):
            yield model(chunk[:, :-1]), chunk[:, 1:]

    def measure(model: nn.Module, name: str, thorough: bool) -> tuple[float, float]:
        windows = _windows(ids[name], width + 1, len(ids[name]) if thorough else QUICK_WINDOWS)
        return word_measures(scored(model, windows))[:2]

    return Task(
        kind="gpt",
        config=config,
        tokenizer=tokenizer,
        objective=functools.partial(next_words, label_smoothing=training.label_smoothing),
        batches=batches,
        steps_per_epoch=steps_per_epoch,
        measure=both_parts(measure),
        prompt=text[cut : cut + min(PROMPT_LENGTH, width // 2)].strip() or text[0],
    )
