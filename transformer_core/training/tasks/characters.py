"""The next character: a GPT, or a recurrent network, learns to continue one text.

Radford et al. 2018, section 3.1.
"""

import functools
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from transformer_core.bundle import Bundle
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import TOKENS_AT_ONCE, even_windows, random_windows
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import NO_PADDING, next_words
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.task import Task, both_parts, config_of, word_measures

HELD_OUT_SHARE = 0.1
QUICK_WINDOWS = 48
PROMPT_LENGTH = 24
PIECE = 200
MOST_BEGUN = 64  # tokens a window of a run that begins with a model, whose max_len may be more than the text has


def _own_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the ids of a text without what a template puts around it."""
    encoding = tokenizer.encode(text)
    return [id_ for id_, (_, end) in zip(encoding.ids, encoding.offsets, strict=True) if end]


def characters_of(text: str) -> Tokenizer:
    """Return a tokenizer of the characters that a text has."""
    return Tokenizer.train("character", [text], vocab_size=8_000, min_frequency=1, template="none")


def parts_of(text: str) -> tuple[str, str]:
    """Return the part of a text that is learned, and its last tenth, which is held out."""
    cut = round(len(text) * (1 - HELD_OUT_SHARE))
    return text[:cut], text[cut:]


def pieces(text: str) -> list[str]:
    """Return the lines of a text that have anything in them, long ones in pieces of PIECE characters."""
    lines = (line.strip() for line in text.splitlines())
    return [line[start : start + PIECE] for line in lines for start in range(0, len(line), PIECE)]


def require_windows(text: str, width: int) -> None:
    """Raise ValueError where a text is too short for one held-out window of so many characters that a model reads."""
    if len(parts_of(text)[1]) <= width + 1:
        raise ValueError(
            f"text of {len(text):,} characters is too short for windows of max_len={width}: "
            f"{round((width + 2) / HELD_OUT_SHARE):,} are needed, or a smaller max_len"
        )


class CharacterWindows:
    """A text as ids of characters, of which the last tenth is held out, and batches of windows from the rest.

    An epoch has `count` windows that begin at random places.

    Args:
        text: what is learned.
        width: characters a window that a model reads.
        count: windows an epoch.
        training: gives the size of a batch and the seed.
        device: of the batches.
        tokenizer: by default one of the characters that the text has.

    Raises:
        ValueError: the text is too short for one held-out window.
    """

    def __init__(
        self,
        text: str,
        *,
        width: int,
        count: int,
        training: TrainConfig,
        device: torch.device,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        require_windows(text, width)
        self.learned, self.held_out = parts_of(text)
        self.tokenizer = tokenizer or characters_of(self.learned)
        parts = {"train": self.learned, "held_out": self.held_out}
        self.ids = {name: torch.tensor(_own_ids(self.tokenizer, part)) for name, part in parts.items()}
        if (shortest := min(map(len, self.ids.values()))) <= width + 1:
            raise ValueError(f"text has {shortest:,} tokens in one part, too few for windows of max_len={width}")
        self.steps_per_epoch = max(1, count // training.batch_size)
        self._device = device
        self._batches = random_windows(
            self.ids["train"], width, training.batch_size, steps=self.steps_per_epoch, seed=training.seed
        )

    def epoch(self, number: int) -> Iterator[Tensor]:
        """Yield batches (batch, width + 1) of an epoch; the same number gives the same batches."""
        return (batch.to(self._device) for batch in self._batches(number))


def character_task(spec: RunSpec, text: str, device: torch.device, begun: Bundle | None = None) -> Task:
    """Return the task of guessing each next character; the last tenth of the text is held out.

    An epoch is `spec.data.examples` windows that begin at random places.

    Args:
        spec: the run's.
        text: what is learned.
        device: of the batches.
        begun: the model that the run begins with, if it is not a fresh one; tokens are then its own.

    Raises:
        ValueError: as CharacterWindows.
    """
    training, width = spec.training, spec.model.max_len
    if begun is not None:
        width = min(width, MOST_BEGUN)
    tokenizer = None if begun is None else begun.tokenizer
    characters = CharacterWindows(
        text, width=width, count=spec.data.examples, training=training, device=device, tokenizer=tokenizer
    )
    config = config_of(spec, characters.tokenizer, begun)
    padding = PAD_ID if begun is None else NO_PADDING  # windows have none, but a foreign vocabulary has a word there

    def scored(model: nn.Module, windows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        for chunk in windows.to(device).split(max(1, TOKENS_AT_ONCE // width)):
            yield model(chunk[:, :-1]), chunk[:, 1:]

    def measure(model: nn.Module, name: str, thorough: bool) -> tuple[float, float]:
        ids = characters.ids[name]
        most = max(1, len(ids) // (width + 1))
        windows = even_windows(ids, width, most if thorough else min(QUICK_WINDOWS, most))
        return word_measures(scored(model, windows), padding=padding)[:2]

    return Task(
        kind=spec.kind,
        config=config,
        tokenizer=characters.tokenizer,
        objective=functools.partial(next_words, label_smoothing=training.label_smoothing, padding=padding),
        batches=characters.epoch,
        steps_per_epoch=characters.steps_per_epoch,
        measure=both_parts(measure),
        prompt=characters.held_out[: min(PROMPT_LENGTH, width // 2)].strip() or text[0],
    )
