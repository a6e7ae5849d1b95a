"""The Chinese classifier: `python -m transformer_core.recipes.sentiment_zh --data DIR` trains and writes its bundle.

It reads Chinese character by character. A second classifier, which never saw two of the subjects, tells how much is
lost on a subject that is not learned from; it is measured and not kept.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.examples import Example
from transformer_core.measured import Slice
from transformer_core.recipes.captions import find_file
from transformer_core.recipes.classifiers import LABELS, Beside, CardWords, Kind, add_parts, divided, make_classifier
from transformer_core.recipes.command import recipe_parser, run_command
from transformer_core.recipes.everyday import CHINESE_OPINIONS
from transformer_core.recipes.reviews import Crops, Pretraining, SentimentSettings, quick, train_in_stages
from transformer_core.recipes.wording import Say, template
from transformer_core.training.config import TrainConfig
from transformer_core.untrusted.tables.labelled import read_records

REVIEWS = "zh_reviews/train.csv.gz"
UNSEEN = {template("takeaway"): ("takeaway",), template("hotels"): ("hotels", "hotels2")}
UNSEEN_MARK = ", by a model that did not learn from it"
NAME = template("online reviews")
FULL = SentimentSettings(
    vocab_size=6_000,
    model=ModelConfig(
        vocab_size=6_000,
        d_model=128,
        n_heads=8,
        d_ff=512,
        n_layers=4,
        max_len=192,
        dropout=0.1,
        positions="sinusoidal",
        scale_embeddings=True,
    ),
    pretraining=Pretraining(
        TrainConfig(learning_rate=2e-3, warm_up=0.05, weight_decay=0.01, batch_size=128, epochs=8),
        max_len=128,
        hide=0.2,
    ),
    training=TrainConfig(
        learning_rate=6e-4, warm_up=0.06, weight_decay=0.1, label_smoothing=0.05, batch_size=128, epochs=4
    ),
    crops=Crops(opening=0.6, window=0.4, whole=192),
    hide=0.1,
)
QUICK = quick(FULL)
WORDS = CardWords(
    title=template("is a Chinese sentence or review positive or negative?"),
    introduction=template(
        "A small Transformer encoder, class from [CLS], that was trained from scratch on Chinese reviews of "
        "things bought online, hotels and meals, character by character, to be looked into rather than relied on."
    ),
    data=template(
        "{online_reviews} Chinese reviews of books, tablets, phones, fruit, shampoo, clothes, hotels, computers, "
        "dairy, heaters and takeaway meals (online_shopping_10_cats, ChnSentiCorp hotels and waimai_10k, as published "
        "in ChineseNlpCorpus)"
    ),
    licence=template("the collections state none; these weights are for research and teaching, naming the source"),
    reads="zh",
    everyday=CHINESE_OPINIONS,
    limits=(
        template(
            "It knows opinions in simplified Chinese on things that are bought; traditional characters are unknown to "
            "it."
        ),
        template(
            "It knows two classes: a neutral or factual sentence is forced into one of them, often with confidence."
        ),
        template("Irony and double negation still mislead it, and a character that it has not seen tells it nothing."),
        template("It reads no further than 192 characters."),
        template("It has the prejudices of its reviews: the name of a shop or a brand can sway it."),
    ),
)


def read_subjects(folder: Path, *, quick: bool) -> dict[Example, str]:
    """Return the reviews with the subject of each.

    Raises:
        ValueError: the file is missing or broken.
    """
    rows = [values for _, values in read_records(find_file(folder, REVIEWS), ("text", "label", "category"))]
    subjects = {Example(text, int(label)): category for text, label, category in rows if text.strip()}
    return dict(list(subjects.items())[: 2_000 if quick else None])


def subject_lines(rows: Sequence[Slice], say: Say) -> list[str]:
    """Return a line on each subject: the accuracy of the model, and of the one that did not learn from it."""
    found = {row.data: row for row in rows}
    return [
        say(
            "{subject}: {seen:.1%} of {texts:,}, and {unseen:.1%} by a model that did not learn from this subject; "
            "both on the part kept for choices, and nothing was chosen by these two figures",
            subject=say(subject),
            texts=found[subject].texts,
            seen=found[subject].accuracy,
            unseen=found[subject + UNSEEN_MARK].accuracy,
        )
        for subject in UNSEEN
    ]


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line; the bundle and the texts set aside are on disk afterwards.

    Raises:
        ValueError: the data cannot be read or are too few, or the files of an interrupted run do not fit.
    """
    settings = QUICK if chosen.quick else FULL
    subjects = read_subjects(chosen.data, quick=chosen.quick)
    choice, test = (40, 80) if chosen.quick else (1_500, 4_000)
    parts = divided(subjects, choice=choice, test=test, seed=chosen.seed)
    kind = Kind(NAME, "sentence", *parts, read=parts[0])

    def by_subject(bundle: Bundle) -> tuple[Slice, ...]:
        known = slices_of(bundle, "{}")
        if chosen.again:
            before = load(chosen.out, device="cpu").measured.slices
            return (*known, *(row for row in before if row.data.endswith(UNSEEN_MARK)))
        left_out = {category for categories in UNSEEN.values() for category in categories}
        learned = [example for example in kind.learned if subjects[example] not in left_out]
        model, _ = train_in_stages(settings, bundle.tokenizer, learned, learned, chosen, name="unseen_")
        return (*known, *slices_of(Bundle("unseen", model, bundle.tokenizer, LABELS), "{}" + UNSEEN_MARK))

    def slices_of(bundle: Bundle, form: str) -> tuple[Slice, ...]:
        rows = []
        for name, categories in UNSEEN.items():
            examples = [example for example in kind.choice if subjects[example] in categories]
            right = round(measure_classifier(bundle, examples)["accuracy"] * len(examples))
            rows.append(Slice(form.format(name), kind.unit, (), len(examples), right))
        return tuple(rows)

    beside = Beside(by_subject, subject_lines)
    return make_classifier(settings, [kind], WORDS, chosen, recipe="sentiment_zh", beside=beside)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("sentiment_zh", makes="the Chinese classifier", data=REVIEWS, out="sentiment-zh")
    add_parts(parser)
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
