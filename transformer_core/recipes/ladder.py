"""What each change since 2017 is worth: `python -m transformer_core.recipes.ladder --data DIR --out FILE.json`.

Trains a small decoder of stories for every rung of analysis/gpt/ladder.py from each seed, all on the same tokens in the
same order with the same settings, and measures it on stories that were set aside. About a minute a run on one core.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import torch

from transformer_core.analysis.gpt.ladder import BASE, NAMES, LadderRun, config_at, write_ladder
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.gpt import measure_text
from transformer_core.models import Gpt
from transformer_core.recipes.captions import read_stories
from transformer_core.recipes.gpt import BETWEEN_TEXTS, Windows
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.training.objectives import NO_PADDING, next_words
from transformer_core.untrusted.schema import checked

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


def measure_ladder(data: Path, out: Path, work: Path | None, *, quick: bool) -> None:
    """Carry out all runs on one thread and write what they measured.

    Args:
        work: a file to which each finished run is added as a line, so that an interrupted command goes on.

    Raises:
        ValueError: a file is missing or holds no stories.
    """
    torch.set_num_threads(1)
    stories, held_out = (read_stories(data, name) for name in FILES)
    text, asked = BETWEEN_TEXTS.join(stories), BETWEEN_TEXTS.join(held_out)
    base, training = (QUICK, replace(TRAINING, epochs=1)) if quick else (BASE, TRAINING)
    tokenizer = Tokenizer.train("bpe", text.split("\n"), vocab_size=base.vocab_size, template="none")
    token_ids = torch.tensor(tokenizer.encode(text).ids, dtype=torch.int32)
    before = [] if work is None or not work.is_file() else work.read_text(encoding="utf-8").splitlines()
    done = {(run.rung, run.seed): run for run in (checked(json.loads(line), LadderRun) for line in before)}
    runs = []
    for seed in SEEDS:
        windows = Windows(token_ids, base.max_len, training.batch_size, seed)
        for name in NAMES:
            run = done.get((name, seed))
            if run is None:
                config = replace(config_at(name, base), vocab_size=tokenizer.vocab_size, target_vocab_size=None)
                bundle = Bundle(name, train_rung(config, windows, replace(training, seed=seed)), tokenizer, reads="en")
                run = LadderRun(name, seed, measure_text(bundle, asked)["loss_nats"], bundle.n_parameters)
                if work is not None:
                    with work.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(run)) + "\n")
            print(f"ladder: {run}", file=sys.stderr, flush=True)
            runs.append(run)
    steps = training.epochs * len(windows)
    write_ladder(
        out,
        runs,
        command=f"python -m transformer_core.recipes.ladder --data DIR --out {out.as_posix()}",
        file=FILES[0],
        steps=steps,
        tokens=steps * training.batch_size * base.max_len,
        asked=len(tokenizer.encode(asked).ids) - 1,
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="ladder", description="Measure what each change since 2017 is worth.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help=f"folder that holds {FILES[0]} and val")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json", help="where the numbers are written")
    parser.add_argument(
        "--work", type=Path, metavar="FILE.jsonl", help="finished runs, kept for an interrupted command"
    )
    parser.add_argument("--quick", action="store_true", help="tiny models and one epoch, to try the command out")
    chosen = parser.parse_args(arguments)
    try:
        measure_ladder(chosen.data, chosen.out, chosen.work, quick=chosen.quick)
    except (ValueError, OSError) as error:
        print(f"ladder: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
