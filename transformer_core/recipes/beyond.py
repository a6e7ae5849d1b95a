"""Schemes of positions beyond the trained length: `python -m transformer_core.recipes.beyond --data D --out F`.

Trains small models of characters on stories, each scheme of positions at one length, and sinusoidal beside learned
positions at two lengths and two sizes of data; then measures each on longer windows of stories that were set aside.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from transformer_core.analysis.positions.beyond import COURSE, SCHEMES, Course, train_short
from transformer_core.analysis.positions.beyond_measured import BeyondRun, check_bins, write_beyond
from transformer_core.recipes.captions import read_stories
from transformer_core.text import Tokenizer
from transformer_core.untrusted.schema import checked

FILES = ("tinystories.train.jsonl.gz", "tinystories.val.jsonl.gz")
BETWEEN = "\n\n"
SEEDS = (0, 1)
WIDTHS, FEW_STORIES = (64, 256), 8
COMPARED = ("sinusoidal", "learned")
QUICK = replace(
    COURSE, model=replace(COURSE.model, d_model=16, n_heads=2, d_head=8, d_ff=16, n_layers=1), steps=2, windows=4
)


@dataclass(frozen=True)
class Plan:
    """One run: its scheme, the width of its windows, its stories (None for all), and its seed."""

    scheme: str
    width: int
    stories: int | None
    seed: int


def plans(seeds: Iterable[int] = SEEDS) -> list[Plan]:
    """Return all runs: every scheme at the first width on all stories, then two schemes at both widths and sizes."""
    cases = [(scheme, WIDTHS[0], None) for scheme in SCHEMES]
    cases += [(scheme, width, count) for width in WIDTHS for count in (FEW_STORIES, None) for scheme in COMPARED]
    return [Plan(*case, seed) for seed in seeds for case in dict.fromkeys(cases)]


def run_plan(plan: Plan, stories: list[str], asked: str, tokenizer: Tokenizer, course: Course) -> BeyondRun:
    """Train and measure one run."""
    chosen = stories[: plan.stories]
    text = BETWEEN.join(chosen)
    found = train_short(tokenizer, text, asked, scheme=plan.scheme, width=plan.width, seed=plan.seed, course=course)
    return BeyondRun(
        scheme=plan.scheme,
        width=plan.width,
        stories=len(chosen),
        characters=len(text),
        seed=plan.seed,
        within=round(found.within, 4),
        forgetful=round(found.forgetful, 4),
        learned=round(found.learned, 4),
        nats=tuple(round(float(value), 4) for value in found.nats),
    )


def measure_beyond(data: Path, work: Path | None, course: Course, seeds: Iterable[int]) -> list[BeyondRun]:
    """Carry out all runs, one after another on one thread; those that a file of earlier rows has are kept.

    Args:
        data: folder that holds FILES, in it or in its subfolders.
        work: a file to which each finished run is added as a line, so that an interrupted command goes on.

    Raises:
        ValueError: a file is missing or holds no stories.
    """
    stories, held_out = (read_stories(data, name) for name in FILES)
    asked = BETWEEN.join(held_out)
    tokenizer = Tokenizer.train(
        "character", [BETWEEN.join(stories)], vocab_size=8_000, min_frequency=1, template="none"
    )
    before = [] if work is None or not work.is_file() else work.read_text(encoding="utf-8").splitlines()
    rows = [checked(json.loads(line), BeyondRun) for line in before]
    check_bins(rows, len(course.ends))
    done = {(row.scheme, row.width, row.stories, row.seed): row for row in rows}
    found = []
    torch.set_num_threads(1)
    for plan in plans(seeds):
        count = min(plan.stories or len(stories), len(stories))
        row = done.get((plan.scheme, plan.width, count, plan.seed))
        if row is None:
            row = run_plan(plan, stories, asked, tokenizer, course)
            if work is not None:
                with work.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row.as_row()) + "\n")
        print(f"beyond: {json.dumps(row.as_row())}", file=sys.stderr, flush=True)
        found.append(row)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="beyond", description="Measure schemes of positions beyond their length.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help=f"folder that holds {FILES[0]} and val")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json", help="where the numbers are written")
    parser.add_argument(
        "--work", type=Path, metavar="FILE.jsonl", help="finished runs, kept for an interrupted command"
    )
    parser.add_argument("--quick", action="store_true", help="a tiny model and two steps, to try the command out")
    chosen = parser.parse_args(arguments)
    course, seeds = (QUICK, SEEDS[:1]) if chosen.quick else (COURSE, SEEDS)
    quick = " --quick" if chosen.quick else ""
    command = f"python -m transformer_core.recipes.beyond --data DIR --out {chosen.out.as_posix()}{quick}"
    try:
        rows = measure_beyond(chosen.data, chosen.work, course, seeds)
        write_beyond(chosen.out, rows, course, command=command, files=FILES)
    except (ValueError, OSError) as error:
        print(f"beyond: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
