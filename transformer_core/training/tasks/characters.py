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
from transformer_core.training.config import TrainConfig
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


class CharacterWindows:
    """A text as ids of characters, of which the last tenth is held out, and batches of windows from the rest.

    An epoch has `count` windows that begin at random places.

    Args:
        text: what is learned.
        width: characters a window that a model reads.
        count: windows an epoch.
        training: gives the size of a batch and the seed.
        device: of the batches.

    Raises:
        ValueError: the text is too short for one held-out window.
    """

    def __init__(self, text: str, *, width: int, count: int, training: TrainConfig, device: torch.device) -> None:
        cut = round(len(text) * (1 - HELD_OUT_SHARE))
        if len(text) - cut <= width + 1:
            raise ValueError(
                f"text of {len(text):,} characters is too short for windows of max_len={width}: "
                f"{round((width + 2) / HELD_OUT_SHARE):,} are needed, or a smaller max_len"
            )
        self.learned, self.held_out = text[:cut], text[cut:]
        self.tokenizer = Tokenizer.train(
            "character", [self.learned], vocab_size=8_000, min_frequency=1, template="none"
        )
        parts = {"train": self.learned, "held_out": self.held_out}
        self.ids = {name: torch.tensor(self.tokenizer.encode(part).ids) for name, part in parts.items()}
        self.steps_per_epoch = max(1, count // training.batch_size)
        self._width, self._training, self._device = width, training, device

    def epoch(self, number: int) -> Iterator[Tensor]:
        """Yield batches (batch, width + 1) of an epoch; the same number gives the same batches."""
        rng = np.random.default_rng((self._training.seed, number))
        ids, width = self.ids["train"], self._width
        for _ in range(self.steps_per_epoch):
            starts = torch.from_numpy(rng.integers(0, len(ids) - width, self._training.batch_size))
            yield ids[starts[:, None] + torch.arange(width + 1)].to(self._device)


def character_task(spec: RunSpec, text: str, device: torch.device) -> Task:
    """Return the task of guessing each next character; the last tenth of the text is held out.

    An epoch is `spec.data.examples` windows that begin at random places.

    Args:
        spec: the run's.
        text: what is learned.
        device: of the batches.

    Raises:
        ValueError: as CharacterWindows.
    """
    training, width = spec.training, spec.model.max_len
    characters = CharacterWindows(text, width=width, count=spec.data.examples, training=training, device=device)
    config = replace(spec.model, vocab_size=characters.tokenizer.vocab_size, target_vocab_size=None, pad_id=PAD_ID)

    def scored(model: nn.Module, windows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        for chunk in windows.to(device).split(max(1, TOKENS_AT_ONCE // width)):
            yield model(chunk[:, :-1]), chunk[:, 1:]

    def measure(model: nn.Module, name: str, thorough: bool) -> tuple[float, float]:
        ids = characters.ids[name]
        windows = _windows(ids, width + 1, len(ids) if thorough else QUICK_WINDOWS)
        return word_measures(scored(model, windows))[:2]

    return Task(
        kind="gpt",
        config=config,
        tokenizer=characters.tokenizer,
        objective=functools.partial(next_words, label_smoothing=training.label_smoothing),
        batches=characters.epoch,
        steps_per_epoch=characters.steps_per_epoch,
        measure=both_parts(measure),
        prompt=characters.held_out[: min(PROMPT_LENGTH, width // 2)].strip() or text[0],
    )
