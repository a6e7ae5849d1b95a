"""What each change since 2017 is worth: `python -m transformer_core.recipes.ladder --data DIR --out FILE.json`.

Trains a small decoder of stories for every rung of analysis/gpt/ladder.py from each seed, all on the same tokens in the
same order with the same settings, and measures it on stories that were set aside. About a minute a run on one core.
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace

import torch

from transformer_core.analysis.gpt.ladder import BASE, NAMES, LadderMeasured, LadderRun, config_at
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.gpt import measure_text
from transformer_core.models import Gpt
from transformer_core.recipes.captions import read_stories
from transformer_core.recipes.gpt import BETWEEN_TEXTS, Windows
from transformer_core.recipes.study import each_run, run_study
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.training.objectives import NO_PADDING, next_words

FILES = ("tinystories.train.jsonl.gz", "tinystories.val.jsonl.gz")
SEEDS = (0, 1, 2)
TRAINING = TrainConfig(learning_rate=3e-3, weight_decay=0.1, batch_size=16, epochs=3)
QUICK = replace(BASE, d_model=16, d_ff=24, n_layers=1, max_len=32)


def train_rung(config: ModelConfig, windows: Windows, training: TrainConfig) -> Gpt:
    """Train a model to the end and return it."""
    torch.manual_seed(training.seed)

    def objective(model: Gpt, token_ids: torch.Tensor) -> torch.Tensor:
        return next_words(model, token_ids, padding=NO_PADDING)

    def batches(epoch: int) -> Iterable[torch.Tensor]:
        return (batch.long() for batch in windows.epoch(epoch))

    model = Gpt(config)
    for _ in Run(model, objective, batches, steps_per_epoch=len(windows), config=training).steps():
        pass
    return model.eval().requires_grad_(False)


def measure_ladder(chosen: argparse.Namespace, command: str) -> LadderMeasured:
    """Carry out all runs on one thread and return what they measured.

    Raises:
        ValueError: a file is missing or holds no stories.
    """
    torch.set_num_threads(1)
    stories, held_out = (read_stories(chosen.data, name) for name in FILES)
    text, asked = BETWEEN_TEXTS.join(stories), BETWEEN_TEXTS.join(held_out)
    base, training = (QUICK, replace(TRAINING, epochs=1)) if chosen.quick else (BASE, TRAINING)
    tokenizer = Tokenizer.train("bpe", text.split("\n"), vocab_size=base.vocab_size, template="none")
    token_ids = torch.tensor(tokenizer.encode(text).ids, dtype=torch.int32)

    def windows(seed: int) -> Windows:
        return Windows(token_ids, base.max_len, training.batch_size, seed)

    def run(rung: str, seed: int) -> LadderRun:
        config = replace(config_at(rung, base), vocab_size=tokenizer.vocab_size, target_vocab_size=None)
        model = train_rung(config, windows(seed), replace(training, seed=seed))
        bundle = Bundle(rung, model, tokenizer, reads="en")
        return LadderRun(rung, seed, measure_text(bundle, asked)["loss_nats"], bundle.n_parameters)

    plans = [{"rung": name, "seed": seed} for seed in SEEDS for name in NAMES]
    runs, steps = each_run(plans, run, LadderRun, chosen.work), training.epochs * len(windows(SEEDS[0]))
    tokens = steps * training.batch_size * base.max_len
    return LadderMeasured(command, FILES[0], steps, tokens, len(tokenizer.encode(asked).ids) - 1, runs)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    says, quick = "Measure what each change since 2017 is worth.", "tiny models and one epoch"
    return run_study("ladder", measure_ladder, arguments, says=says, data=f"{FILES[0]} and val", quick=quick)


if __name__ == "__main__":
    sys.exit(main())
