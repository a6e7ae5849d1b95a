"""GPTs of stories and captions: `python -m transformer_core.recipes.gpt [MODEL] --data DIR` trains and writes a bundle.

MODEL is gpt (Radford et al. 2018, section 3.1); gpt-today, the same text, vocabulary, steps and size within 1 %, with
the choices of Llama 3 (Dubey et al. 2024, section 3.2; the papers are named in ModelConfig); or gpt-draft, an eighth as
large and a third as long trained, which proposes words to the other two.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.gpt import measure_text
from transformer_core.evaluation.translation import read_lines
from transformer_core.models import Gpt
from transformer_core.recipes.captions import NEEDS, find_file, read_captions, read_stories, sentences_in
from transformer_core.recipes.card import samples_of, typical_on, write_bundle
from transformer_core.recipes.command import command_of, recipe_parser, run_command, settle, train
from transformer_core.recipes.texts import card_sentences
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import next_words

STORY_REPEATS = 4  # an epoch; there are far fewer stories than captions
LINES_TOGETHER = 12
BETWEEN_TEXTS = "\n\n"
TOKENS_WRITTEN = 60


@dataclass(frozen=True)
class GptSettings:
    """Sizes of the vocabulary and the model, and how to train."""

    vocab_size: int
    model: ModelConfig
    training: TrainConfig


FULL = GptSettings(
    vocab_size=4_000,
    model=ModelConfig(
        vocab_size=16,
        d_model=192,
        n_heads=6,
        d_ff=768,
        n_layers=4,
        max_len=128,
        dropout=0.1,
        positions="learned",
        activation="gelu_tanh",
        embedding_norm=True,
    ),
    training=TrainConfig(optimizer="muon", learning_rate=3e-3, warm_up=0.05, weight_decay=0.1, batch_size=32, epochs=3),
)
TODAY: dict[str, Any] = {
    "positions": "rotary",
    "rotary_halves": True,
    "embedding_norm": False,
    "norm": "rms_norm",
    "activation": "silu",
    "gated": True,
    "bias": False,
}
SMALL = {"d_model": 64, "n_heads": 2, "n_kv_heads": 1, "d_ff": 176, "n_layers": 2}
MODELS = {
    "gpt": FULL,
    "gpt-today": replace(FULL, model=replace(FULL.model, **TODAY, n_kv_heads=2, d_ff=608)),
    "gpt-draft": replace(FULL, model=replace(FULL.model, **TODAY | SMALL), training=replace(FULL.training, epochs=1)),
}


def quick(settings: GptSettings) -> GptSettings:
    """Return settings for a tiny model that is trained in seconds."""
    model = replace(settings.model, d_model=32, n_heads=2, n_kv_heads=None, d_head=16, d_ff=64, n_layers=1, max_len=64)
    return GptSettings(600, model, replace(settings.training, batch_size=16, epochs=1))


QUICK_STORIES, QUICK_PICTURES = 20, 40


def written_together(stories: list[str], captions: list[str], seed: int) -> str:
    """Return one text of all stories, several times over, and all captions in lists of twelve lines, shuffled.

    Captions are shuffled first, so that those of one picture are rarely in one list.
    """
    rng = random.Random(seed)
    captions = rng.sample(captions, len(captions))
    lists = ["\n".join(captions[start : start + LINES_TOGETHER]) for start in range(0, len(captions), LINES_TOGETHER)]
    texts = lists + stories * STORY_REPEATS
    rng.shuffle(texts)
    return BETWEEN_TEXTS.join(texts)


class Windows:
    """Windows of one long sequence of tokens; each epoch cuts it at other places and shuffles the windows."""

    def __init__(self, token_ids: Tensor, width: int, batch_size: int, seed: int) -> None:
        self._ids, self._width, self._batch_size, self._seed = token_ids, width, batch_size, seed
        self._count = len(token_ids) // width - 1  # one fewer, for the shift

    def __len__(self) -> int:
        return max(1, self._count // self._batch_size)

    def epoch(self, number: int) -> Iterator[Tensor]:
        """Yield batches (batch, width + 1) of an epoch; the same number gives the same batches."""
        rng = np.random.default_rng((self._seed, number))
        shift = int(rng.integers(self._width))
        windows = self._ids[shift:].unfold(0, self._width + 1, self._width)[: self._count]  # (window, width + 1)
        order = torch.from_numpy(rng.permutation(len(windows)))
        for places in order[: len(self) * self._batch_size].split(self._batch_size):
            yield windows[places]


def read_held_out(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the two held-out texts by name, and write them to the files of --held-out.

    Raises:
        ValueError: a file is missing or broken.
    """
    held_out = {
        "stories": BETWEEN_TEXTS.join(read_stories(chosen.data, "tinystories.val.jsonl.gz")),
        "captions": "\n".join(read_lines(find_file(chosen.data, "captions.val.en.gz"))),
    }
    if chosen.held_out is not None:
        for name, text in held_out.items():
            chosen.held_out.with_suffix(f".{name}.txt").write_text(text, encoding="utf-8")
    return held_out


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards.

    Raises:
        ValueError: the data cannot be read, or the files of an interrupted run do not fit.
    """
    settings = quick(MODELS[chosen.model]) if chosen.quick else MODELS[chosen.model]
    chosen.out, chosen.work = (Path(str(path).replace("gpt-MODEL", chosen.model)) for path in (chosen.out, chosen.work))
    pictures, stories = read_captions(chosen.data), read_stories(chosen.data)
    if chosen.quick:
        pictures, stories = pictures[:QUICK_PICTURES], stories[:QUICK_STORIES]
    text = written_together(stories, [caption for picture in pictures for caption in picture], chosen.seed)
    tokenizer = Tokenizer.train("bpe", text.split("\n"), vocab_size=settings.vocab_size, template="none")
    token_ids = torch.tensor(tokenizer.encode(text).ids, dtype=torch.int32)
    config, device = settle(settings.training, chosen)
    model_config = replace(settings.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None, pad_id=None)
    windows = Windows(token_ids, model_config.max_len, config.batch_size, chosen.seed)
    model, trained = train(
        lambda: Gpt(model_config),
        next_words,
        lambda number: (batch.long().to(device) for batch in windows.epoch(number)),
        steps_per_epoch=len(windows),
        config=config,
        device=device,
        chosen=chosen,
    )
    held_out = read_held_out(chosen)

    def measure(bundle: Bundle) -> dict[str, Any]:
        written = samples_of(bundle, card_sentences("beginnings.en.txt"), most=TOKENS_WRITTEN)
        of_texts = {name: measure_text(bundle, text) for name, text in held_out.items()}
        return of_texts | {"times": STORY_REPEATS, "tokens": len(token_ids), "written": written}

    sentences = [text for story in held_out["stories"].split(BETWEEN_TEXTS) for text in sentences_in(story)]
    captions = held_out["captions"].splitlines()
    found = write_bundle(
        Bundle(chosen.out.name, model, tokenizer, reads="en"),
        chosen.out,
        list(dict.fromkeys(("gpt", chosen.model))),
        [(trained, config)],
        measure,
        typical_on(("Multi30k", "caption", captions), ("TinyStories", "sentence", sentences)),
        recipe=command_of("gpt" if chosen.model == "gpt" else f"gpt {chosen.model}", chosen),
    )
    losses = ", ".join(f"{name} {found[name]['loss_nats']:.4f} nats a token" for name in held_out)
    return f"{chosen.out}: {losses}, {trained.cpu_minutes:.1f} minutes of processor time"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("gpt", makes="a GPT of stories and captions", data=NEEDS, out="gpt-MODEL")
    parser.add_argument("model", nargs="?", default="gpt", choices=MODELS, help="gpt by default")
    parser.add_argument("--held-out", type=Path, help="write what is set aside: FILE.stories.txt, FILE.captions.txt")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
