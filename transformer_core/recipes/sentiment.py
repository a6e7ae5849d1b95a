"""The sentiment classifier: `python -m transformer_core.recipes.sentiment --data DIR` trains and writes its bundle.

It is trained from scratch in the two stages of reviews.py; the reviews set aside measure it.
"""

import argparse
import sys
from pathlib import Path

import torch

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.evaluation.weak_sides import measure_beside
from transformer_core.measured import MEASURED, Measured, write_measured
from transformer_core.recipes.card import OnDisk, list_of, shape_of, write_bundle, write_card
from transformer_core.recipes.command import command_of, open_clock, recipe_parser, run_command
from transformer_core.recipes.reviews import FULL, QUICK, describe, set_aside, train_in_stages
from transformer_core.text import Tokenizer
from transformer_core.training.examples import Example
from transformer_core.training.intake.labelled import read_labelled, read_records, write_labelled

LABELS = ("negative", "positive")
DATA_FILES = ("train25k.csv.gz", "train.csv.gz", "train.csv")
ASIDE = "IMDB"
SENTENCE_FILES = {"SST": "sst/phrases.train.csv.gz", "Hu and Liu 2004": "products/train.csv.gz"}
EVERYDAY = (
    ("I loved it.", 1),
    ("I hated it.", 0),
    ("This is a good film.", 1),
    ("This is not a good film.", 0),
    ("not bad at all", 1),
    ("not good at all", 0),
    ("I expected a masterpiece and got a bore.", 0),
    ("I expected a bore and got a masterpiece.", 1),
    ("a joy from start to finish", 1),
    ("What a waste of time.", 0),
    ("The plot is thin, but the actors are wonderful.", 1),
    ("The actors are wonderful, but the plot is a mess.", 0),
    ("I could not stop laughing.", 1),
    ("I did not laugh once.", 0),
    ("I can't recommend it enough.", 1),
    ("I can't recommend it.", 0),
    ("It never gets boring.", 1),
    ("It could have been so much better.", 0),
    ("The food was cold and the waiter was rude.", 0),
    ("My new phone is great.", 1),
)


def find_data(folder: Path) -> Path:
    """Return the file of reviews in a folder.

    Raises:
        ValueError: there is none.
    """
    found = next((folder / name for name in DATA_FILES if (folder / name).is_file()), None)
    if found is None:
        raise ValueError(f"--data {folder} holds none of {', '.join(DATA_FILES)}")
    return found


def unseen_texts(folder: Path, held_out: list[Example]) -> list[tuple[str, str, list[Example]]]:
    """Return texts that the model does not learn from, with their data's name and unit: reviews, and sentences.

    Args:
        folder: of the reviews; the files of sentences are in subfolders of it or of its parent, and may be missing.
        held_out: the reviews set aside.
    """
    found = [(ASIDE, "review", held_out)]
    for name, file in SENTENCE_FILES.items():
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


def sentence_table(bundle: Bundle) -> str:
    """Return a Markdown table of what a bundle predicts for EVERYDAY, right or wrong."""
    lines = ["| sentence | meant | P(positive) | right |", "|---|---|---|---|"]
    n_right = 0
    for text, label in EVERYDAY:
        ids = bundle.tokenizer.encode(text, max_len=bundle.config.max_len).ids
        with torch.inference_mode():
            probabilities = bundle.model(torch.tensor([ids])).softmax(-1)[0]  # (class,)
        right = int(probabilities.argmax()) == label
        n_right += right
        lines.append(f"| {text} | {bundle.labels[label]} | {probabilities[1]:.2f} | {'yes' if right else '**no**'} |")
    return "\n".join([*lines, "", f"{n_right} of {len(EVERYDAY)} are right."])


def sentiment_card(on_disk: OnDisk, facts: dict[str, str]) -> str:
    """Return the card's Markdown.

    Args:
        on_disk: the bundle, and what measure_classifier returned for it.
        facts: the first rows of its table, up to what training cost.
    """
    bundle, measured, full = on_disk.bundle, on_disk.measured, on_disk.full
    max_len = bundle.config.max_len
    quality = f"""On the {measured["examples"]:,} reviews set aside: accuracy {measured["accuracy"]:.4f}, \
cross entropy {measured["loss_nats"]:.4f} nats a review. {measured["truncated"]:,} of them are longer than \
{max_len} tokens and were judged by their opening.
Before the weights were rounded to float16: accuracy {full["accuracy"]:.4f}, {full["loss_nats"]:.4f} nats.

To measure it again, let the recipe write the reviews set aside with `--held-out FILE.csv`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.csv"""
    limits = [
        "It knows film reviews in English. Other subjects and other languages are outside what it learned.",
        "It knows two classes: a neutral or factual sentence is forced into one of them, often with confidence.",
        "Irony, comparisons and double negation mislead it; so do sentences of a few words, of which it saw only "
        "crops.",
        f"It reads no further than {max_len} tokens, so a verdict at the end of a long review is lost.",
        "It has the prejudices of its reviews: names of people and places can sway it.",
    ]
    return write_card(
        f"{bundle.name}: is a review positive or negative?",
        "A small Transformer encoder that was trained from scratch on film reviews, to be looked into rather than "
        "relied on.",
        {
            **facts,
            "model": f"{shape_of(bundle.config)}, class from [CLS]",
            "text": f"WordPiece, {bundle.tokenizer.vocab_size:,} entries, lower case; at most {max_len} tokens are "
            "read",
            "size": f"{bundle.n_parameters:,} parameters, {on_disk.megabytes:.1f} MB in float16",
            "classes": ", ".join(f"{number} = {name}" for number, name in enumerate(bundle.labels)),
        },
        {
            "Measured quality": quality,
            "Twenty everyday sentences": "They were written for this card before the training, and neither trained on "
            f"nor chosen by.\n\n{sentence_table(bundle)}",
            "What it cannot do": list_of(limits),
        },
    )


def measure_again(chosen: argparse.Namespace) -> str:
    """Write measured.json of an existing bundle, measured on what its recipe sets aside, and return it; train nothing.

    Raises:
        ValueError: the bundle or the data cannot be read.
    """
    settings = QUICK if chosen.quick else FULL
    examples = read_labelled(find_data(chosen.data), LABELS)
    held_out = set_aside(examples, settings.set_aside_per_class, seed=chosen.seed)[1]
    bundle = load(chosen.out, device="cpu")
    write_measured(chosen.out, measure_beside(bundle, unseen_texts(chosen.data, held_out)))
    return (chosen.out / MEASURED).read_text(encoding="utf-8").rstrip("\n")


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line; the bundle and the reviews set aside are on disk afterwards.

    Raises:
        ValueError: the data cannot be read or are too few, or the files of an interrupted run do not fit.
    """
    if chosen.weak_sides:
        return measure_again(chosen)
    settings = QUICK if chosen.quick else FULL
    file = find_data(chosen.data)
    examples, held_out = set_aside(read_labelled(file, LABELS), settings.set_aside_per_class, seed=chosen.seed)
    if chosen.held_out is not None:
        write_labelled(chosen.held_out, held_out)
    clock = open_clock(chosen)
    texts = [example.text for example in examples]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=settings.vocab_size, lowercase=True)
    model = train_in_stages(settings, tokenizer, examples, chosen, clock)

    def card(on_disk: OnDisk) -> str:
        facts = {
            "data": f"Large Movie Review Dataset v1.0 (Maas et al. 2011), from its training split (`{file.name}`): "
            f"{len(examples):,} reviews trained on, {on_disk.measured['examples']:,} set aside (balanced, chosen by "
            "the seed, no text in both parts)",
            "licence": "the reviews are offered for research use, so these weights are for research and teaching too; "
            "cite Maas et al. 2011",
            "recipe": f"`{command_of('sentiment', chosen)}`",
            "seed": f"{chosen.seed}",
            "training": describe(settings),
            "cost": f"{clock.seconds / 60:.0f} minutes of processor time on {torch.get_num_threads()} cores",
        }
        return sentiment_card(on_disk, facts)

    def weak_sides(bundle: Bundle) -> Measured:
        return measure_beside(bundle, unseen_texts(chosen.data, held_out))

    bundle = Bundle(chosen.out.name, model, tokenizer, LABELS)
    measures = write_bundle(
        bundle, chosen.out, lambda read: measure_classifier(read, held_out), card, weak_sides
    ).measured
    return (
        f"{chosen.out}: accuracy {measures['accuracy']:.4f} on {measures['examples']} reviews set aside, "
        f"{clock.seconds / 60:.1f} minutes of processor time"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    needs = f"one of {', '.join(DATA_FILES)}"
    parser = recipe_parser("sentiment", makes="the sentiment classifier", data=needs, out="sentiment", device="cpu")
    parser.add_argument("--held-out", type=Path, help="write the reviews that are set aside to this .csv")
    parser.add_argument("--weak-sides", action="store_true", help=f"train nothing: measure again, write {MEASURED}")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
