"""Schemes of positions beyond the trained length: `python -m transformer_core.recipes.beyond --data D --out F`.

Trains small models of characters on stories, each scheme of positions at one length, and sinusoidal beside learned
positions at two lengths and two sizes of data; then measures each on longer windows of stories that were set aside.
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from transformer_core.analysis.positions.beyond import COURSE, SCHEMES, train_short
from transformer_core.analysis.positions.beyond_measured import BeyondMeasured, BeyondRun
from transformer_core.recipes.captions import read_stories
from transformer_core.recipes.study import each_run, run_study
from transformer_core.training.tasks.characters import characters_of

FILES = ("tinystories.train.jsonl.gz", "tinystories.val.jsonl.gz")
BETWEEN = "\n\n"
SEEDS = (0, 1)
WIDTHS, FEW_STORIES = (64, 256), 8
COMPARED = ("sinusoidal", "learned")
QUICK = replace(
    COURSE, model=replace(COURSE.model, d_model=16, n_heads=2, d_head=8, d_ff=16, n_layers=1), steps=2, windows=4
)


def plans(stories: int, seeds: Iterable[int] = SEEDS) -> list[dict[str, Any]]:
    """Return all runs: every scheme at the first width on all stories, then two schemes at both widths and sizes."""
    cases = [(scheme, WIDTHS[0], stories) for scheme in SCHEMES]
    cases += [(scheme, width, count) for width in WIDTHS for count in (FEW_STORIES, stories) for scheme in COMPARED]
    names = ("scheme", "width", "stories", "seed")
    return [dict(zip(names, (*case, seed), strict=True)) for seed in seeds for case in dict.fromkeys(cases)]


def measure_beyond(chosen: argparse.Namespace, command: str) -> BeyondMeasured:
    """Carry out all runs, one after another on one thread.

    Raises:
        ValueError: a file is missing or holds no stories.
    """
    course, seeds = (QUICK, SEEDS[:1]) if chosen.quick else (COURSE, SEEDS)
    learned, held_out = (read_stories(chosen.data, name) for name in FILES)
    asked = BETWEEN.join(held_out)
    tokenizer = characters_of(BETWEEN.join(learned))

    def run(scheme: str, width: int, stories: int, seed: int) -> BeyondRun:
        text = BETWEEN.join(learned[:stories])
        found = train_short(tokenizer, text, asked, scheme=scheme, width=width, seed=seed, course=course)
        return BeyondRun(
            scheme=scheme,
            width=width,
            stories=stories,
            characters=len(text),
            seed=seed,
            within=round(found.within, 4),
            forgetful=round(found.forgetful, 4),
            learned=round(found.learned, 4),
            nats=tuple(round(float(value), 4) for value in found.nats),
        )

    torch.set_num_threads(1)
    runs = each_run(plans(len(learned), seeds), run, BeyondRun, chosen.work)
    return BeyondMeasured(command, FILES, course.steps, course.characters, course.ends, runs)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    says, quick = "Measure schemes of positions beyond their length.", "a tiny model and two steps"
    return run_study("beyond", measure_beyond, arguments, says=says, data=f"{FILES[0]} and val", quick=quick)


if __name__ == "__main__":
    sys.exit(main())
