"""The sentiment classifier: `python -m transformer_core.recipes.sentiment --data DIR` trains and writes its bundle.

From scratch on crops of the reviews with some of their words hidden (Devlin et al. 2019, section 3.1, hide words too).
Read next: evaluate.py.
"""

import argparse
import functools
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.evaluation.weak_sides import measure_beside
from transformer_core.measured import MEASURED, write_measured
from transformer_core.measured import Measured as WeakSides
from transformer_core.models import Classifier
from transformer_core.recipes.pretraining import STRETCHES, make_pretraining, take_over, work_folders
from transformer_core.recipes.progress import CpuClock, take_steps
from transformer_core.recipes.reviews import ReviewBatches, encode_rows, set_aside
from transformer_core.recipes.sentiment_card import Measured, write_card
from transformer_core.recipes.sentiment_settings import FULL, QUICK, Settings, describe
from transformer_core.recipes.writing import OnDisk, write_bundle
from transformer_core.text import Tokenizer
from transformer_core.training.data import Example, read_labelled, read_records, write_labelled
from transformer_core.training.loop import Run
from transformer_core.training.objectives import classification
from transformer_core.training.precision import has_bfloat16
from transformer_core.training.state import forget_run, load_run

LABELS = ("negative", "positive")
DATA_FILES = ("train25k.csv.gz", "train.csv.gz", "train.csv")
ASIDE = "IMDB"
SENTENCES = {"SST": "sst/phrases.train.csv.gz", "Hu and Liu 2004": "products/train.csv.gz"}


def find_data(folder: Path) -> Path:
    """Return the file of reviews in a folder.

    Raises:
        ValueError: there is none.
    """
    found = next((folder / name for name in DATA_FILES if (folder / name).is_file()), None)
    if found is None:
        raise ValueError(f"--data {folder} holds none of {', '.join(DATA_FILES)}")
    return found


def texts_to_judge_by(folder: Path, held_out: list[Example]) -> list[tuple[str, str, list[Example]]]:
    """Return texts that nothing is learned from, with their data's name and unit: reviews, and sentences at hand.

    Args:
        folder: of the reviews; the sentences lie in folders of it, or beside it.
        held_out: the reviews set aside.
    """
    found = [(ASIDE, "review", held_out)]
    for name, file in SENTENCES.items():
        path = next((place / file for place in (folder, folder.parent) if (place / file).is_file()), None)
        if path is not None:
            found.append((name, "sentence", _whole_sentences(path)))
    return found


def _whole_sentences(path: Path) -> list[Example]:
    """Return the examples of a file that are not blank; where it marks phrases of sentences, only whole sentences."""
    try:
        marked = [values for _, values in read_records(path, ("text", "label", "sentence"))]
    except ValueError:
        marked = [(*values, "1") for _, values in read_records(path, ("text", "label"))]
    return [Example(text, int(label)) for text, label, whole in marked if text.strip() and str(whole) == "1"]


def make_runs(tokenizer: Tokenizer, examples: list[Example], settings: Settings, seed: int) -> tuple[Run, Run]:
    """Return the run that guesses hidden words and the one that then classifies, each before its first step."""
    model = replace(settings.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None)
    precision = "bfloat16" if has_bfloat16(torch.device("cpu")) else "float32"
    rows, labels = encode_rows(tokenizer, examples), [example.label for example in examples]
    cut = functools.partial(ReviewBatches, rows, labels, tokenizer, seed=seed)
    before = replace(settings.pretraining.training, seed=seed, precision=precision)
    stretches = cut(STRETCHES, max_len=settings.pretraining.max_len, batch_size=before.batch_size)
    pretraining = make_pretraining(model, stretches, settings.pretraining, before)
    config = replace(settings.training, seed=seed, precision=precision)
    batches = cut(settings.crops, max_len=model.max_len, batch_size=config.batch_size)
    objective = functools.partial(classification, label_smoothing=config.label_smoothing, hide=settings.hide)
    torch.manual_seed(seed)
    training = Run(Classifier(model), objective, batches, steps_per_epoch=len(batches), config=config)
    return pretraining, training


def write_classifier(
    bundle: Bundle,
    folder: Path,
    held_out: list[Example],
    data: Path,
    *,
    n_train: int,
    clock: CpuClock,
    **card_words: Any,
) -> Measured:
    """Write the bundle with a card of what was measured on the reviews set aside, and return that."""

    def measured(on_disk: OnDisk) -> Measured:
        half, full = on_disk.measured, on_disk.full
        return Measured(
            accuracy=half["accuracy"],
            loss_nats=half["loss_nats"],
            full_accuracy=full["accuracy"],
            full_loss_nats=full["loss_nats"],
            truncated=half["truncated"],
            examples=half["examples"],
            train_examples=n_train,
            cpu_minutes=clock.seconds / 60,
            processors=torch.get_num_threads(),
            megabytes=on_disk.megabytes,
        )

    def card(on_disk: OnDisk) -> str:
        return write_card(on_disk.bundle, measured(on_disk), **card_words)

    def beside(on_disk: Bundle) -> WeakSides:
        return measure_beside(on_disk, texts_to_judge_by(data, held_out))

    return measured(write_bundle(bundle, folder, lambda read: measure_classifier(read, held_out), card, beside))


def measure_again(chosen: argparse.Namespace) -> None:
    """Train nothing: measure the bundle at hand on what its recipe sets aside, and write its weak sides anew.

    Raises:
        ValueError: the bundle or the data cannot be read.
    """
    settings = QUICK if chosen.quick else FULL
    examples = read_labelled(find_data(chosen.data), LABELS)
    held_out = set_aside(examples, settings.set_aside_per_class, seed=chosen.seed)[1]
    bundle = load(chosen.out, device="cpu")
    write_measured(chosen.out, measure_beside(bundle, texts_to_judge_by(chosen.data, held_out)))


def run_recipe(chosen: argparse.Namespace) -> Measured:
    """Do what the command line asks for; the bundle and the reviews set aside are on disk afterwards.

    Raises:
        ValueError: the data cannot be read or are too few, or an earlier sitting's files do not fit.
    """
    settings = QUICK if chosen.quick else FULL
    file = find_data(chosen.data)
    examples, held_out = set_aside(read_labelled(file, LABELS), settings.set_aside_per_class, seed=chosen.seed)
    if chosen.held_out is not None:
        write_labelled(chosen.held_out, held_out)
    folders = work_folders(chosen.work)
    if not chosen.resume:
        for folder in folders:
            forget_run(folder)
    chosen.work.mkdir(parents=True, exist_ok=True)
    clock = CpuClock(chosen.work / "clock.json", resume=chosen.resume)
    texts = [example.text for example in examples]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=settings.vocab_size, lowercase=True)
    pretraining, training = make_runs(tokenizer, examples, settings, chosen.seed)
    if not load_run(training, folders[1]):
        load_run(pretraining, folders[0])
        take_steps(pretraining, folders[0], clock)
        take_over(training.model, pretraining.model)
    take_steps(training, folders[1], clock)
    bundle = Bundle(chosen.out.name, training.model.eval().requires_grad_(False), tokenizer, LABELS)
    command = f"python -m transformer_core.recipes.sentiment --data DIR{' --quick' if chosen.quick else ''}"
    return write_classifier(
        bundle,
        chosen.out,
        held_out,
        chosen.data,
        n_train=len(examples),
        clock=clock,
        command=f"{command} --seed {chosen.seed}",
        data_file=file.name,
        seed=chosen.seed,
        training=describe(settings),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = argparse.ArgumentParser(
        prog="sentiment", description="Train the sentiment classifier and write its bundle."
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds one of {', '.join(DATA_FILES)}")
    parser.add_argument("--out", type=Path, default=Path("assets/checkpoints/sentiment"), help="folder of the bundle")
    parser.add_argument("--work", type=Path, default=Path(".runs/sentiment"), help="folder of what --resume needs")
    parser.add_argument("--held-out", type=Path, help="write the reviews that are set aside to this .csv")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--resume", action="store_true", help="go on where an interrupted run of the same command was")
    parser.add_argument("--quick", action="store_true", help="a tiny model for seconds, to try the recipe out")
    parser.add_argument("--weak-sides", action="store_true", help=f"train nothing: write {MEASURED} of the bundle anew")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.weak_sides:
            measure_again(chosen)
            print((chosen.out / MEASURED).read_text(encoding="utf-8"), end="")
            return 0
        measured = run_recipe(chosen)
    except (ValueError, OSError) as error:
        print(f"sentiment: {error}", file=sys.stderr)
        return 2
    print(
        f"{chosen.out}: accuracy {measured.accuracy:.4f} on {measured.examples} reviews set aside, "
        f"{measured.cpu_minutes:.1f} minutes of processor time"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
