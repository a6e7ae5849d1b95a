"""What each difference to the article is worth: `python -m transformer_core.recipes.article --data D --out F`.

Trains the app's own small classifier on as many reviews as the article had, then the same with one of the article's
choices at a time, then with all of them, each from several seeds. About half an hour on one core.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from transformer_core.evaluation.article_differences import CHOICES, ArticleMeasured, ArticleRow
from transformer_core.examples import rows_needed
from transformer_core.recipes.study import run_study
from transformer_core.training.runs.presets import ARTICLE, IMDB
from transformer_core.training.runs.settings import change, settings
from transformer_core.training.runs.worker.build_run import build_run
from transformer_core.training.spec import Given, RunSpec
from transformer_core.training.tasks.make import make_task
from transformer_core.untrusted.tables import ROWS_FILE, read_imdb, write_rows

FILE = "train25k.csv.gz"
EXAMPLES, HELD_OUT, TOKENS, EPOCHS = ARTICLE.data.examples, 1_000, 128, 12
SEEDS = (0, 1, 2)
QUICK_SIZES = {"examples": 32, "held_out": 16, "max_len": 16, "epochs": 1}
SPARE = 40  # reviews that may be there twice
SIZES = {"examples": EXAMPLES, "held_out": HELD_OUT, "max_len": TOKENS, "epochs": EPOCHS, "points": 40, "threads": 1}


def spec_of(choice: str, seed: int, **sizes: Any) -> RunSpec:
    """Return the app's spec with one of the article's choices: "ours" has none of them, "all" every one.

    Args:
        sizes: other settings, for a try.
    """
    theirs = settings(ARTICLE)
    names = {"ours": (), "all": [name for one in CHOICES.values() for name in one]}.get(choice, CHOICES.get(choice, ()))
    return change(IMDB, **SIZES | sizes, seed=seed, **{name: theirs[name] for name in names})


def measure(spec: RunSpec, folder: Path) -> tuple[float, float, int]:
    """Train a run to its end; return its accuracy on its own reviews and on those set aside, and how many those are.

    Raises:
        ValueError: fewer reviews can be set aside than the spec asks for.
    """
    task = make_task(spec, folder)
    if task.counts["held_out"] != spec.data.held_out:
        raise ValueError(
            f"{task.counts['held_out']:,} different reviews can be set aside; {spec.data.held_out:,} are needed"
        )
    run = build_run(spec, task, torch.device("cpu"))
    for _ in run.steps():
        pass
    run.model.eval()
    measures = task.measure(run.model, True)
    return measures["train_accuracy"], measures["held_out_accuracy"], task.counts["held_out"]


def measure_article(chosen: argparse.Namespace, command: str) -> ArticleMeasured:
    """Carry out all runs on one thread; the same reviews are learned, and the same set aside, with every choice.

    Raises:
        ValueError: the file is missing or has too few reviews.
    """
    torch.set_num_threads(1)
    sizes, rows = QUICK_SIZES if chosen.quick else {}, []
    spec = spec_of("ours", 0, **sizes)
    with TemporaryDirectory() as place:
        folder = Path(place)
        for seed in SEEDS[:1] if chosen.quick else SEEDS:
            asked = rows_needed(spec.data.examples, spec.data.held_out) + SPARE
            found = read_imdb(chosen.data / FILE, limit=asked, seed=seed)[0]
            if len(found) < asked:
                raise ValueError(f"{FILE} has {len(found):,} balanced reviews; {asked:,} are needed")
            (folder / ROWS_FILE).write_bytes(write_rows(found))
            for choice in ("ours", *CHOICES, "all"):
                other = spec_of(choice, seed, **sizes)
                brought = replace(other.data, file=ROWS_FILE, given=Given(name="imdb", count=len(found)))
                train, held_out, count = measure(replace(other, data=brought), folder)
                rows.append(ArticleRow(choice, seed, round(train, 4), round(held_out, 4), count))
                print(rows[-1], file=sys.stderr, flush=True)
    counts = spec.data.examples, spec.model.max_len, spec.training.epochs
    return ArticleMeasured(command, FILE, *counts, tuple(rows))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    says, quick = "Measure what each difference to the article is worth", "few reviews, one seed, one epoch"
    return run_study("article", measure_article, arguments, says=says, data=FILE, quick=quick, work=False)


if __name__ == "__main__":
    sys.exit(main())
