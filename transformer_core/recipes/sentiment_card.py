"""The card of the sentiment bundle: what it learned from, how well it does, and what it cannot do, in measured numbers.

Form: Mitchell et al. 2019 (model cards). Read next: sentiment.py.
"""

from dataclasses import dataclass

import torch

from transformer_core.bundle import Bundle

SENTENCES = (
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


@dataclass(frozen=True)
class Measured:
    """What a run of the recipe measured.

    Args:
        accuracy, loss_nats: of the bundle as it lies on disk in float16, on the reviews set aside.
        full_accuracy, full_loss_nats: of the same weights before they were rounded to float16.
        truncated: reviews set aside that were longer than max_len.
        examples, train_examples: how many reviews were set aside, and trained on.
        cpu_minutes: processor time of the whole recipe, all cores together, evaluation included.
        processors: cores that PyTorch used.
        megabytes: of the weights on disk, in units of 1,000,000 bytes.
    """

    accuracy: float
    loss_nats: float
    full_accuracy: float
    full_loss_nats: float
    truncated: int
    examples: int
    train_examples: int
    cpu_minutes: float
    processors: int
    megabytes: float


def class_probabilities(bundle: Bundle, text: str) -> torch.Tensor:
    """Return the probabilities (class,) that a classifier gives one text."""
    ids = bundle.tokenizer.encode(text, max_len=bundle.config.max_len).ids
    with torch.inference_mode():
        return bundle.model(torch.tensor([ids])).softmax(-1)[0]


def sentence_table(bundle: Bundle) -> str:
    """Return a Markdown table of what a bundle makes of SENTENCES, right or wrong."""
    lines = ["| sentence | meant | P(positive) | right |", "|---|---|---|---|"]
    n_right = 0
    for text, label in SENTENCES:
        probabilities = class_probabilities(bundle, text)
        right = int(probabilities.argmax()) == label
        n_right += right
        lines.append(f"| {text} | {bundle.labels[label]} | {probabilities[1]:.2f} | {'yes' if right else '**no**'} |")
    return "\n".join([*lines, "", f"{n_right} of {len(SENTENCES)} are right."])


def write_card(bundle: Bundle, measured: Measured, *, command: str, data_file: str, seed: int, training: str) -> str:
    """Return the card's Markdown.

    Args:
        bundle: as it lies on disk.
        measured: by the recipe.
        command: that trained it.
        data_file: name of the file of reviews.
        seed: of everything random.
        training: the phases of the training in words.
    """
    config = bundle.config
    return f"""# {bundle.name}: is a review positive or negative?

A small Transformer encoder that was trained from scratch on film reviews, to be looked into rather than relied on.

| | |
|---|---|
| data | Large Movie Review Dataset v1.0 (Maas et al. 2011), from its training split (`{data_file}`): \
{measured.train_examples:,} reviews trained on, {measured.examples:,} set aside (balanced, chosen by the seed, no \
text in both parts) |
| licence | the reviews are offered for research use, so these weights are for research and teaching too; \
cite Maas et al. 2011 |
| recipe | `{command}` |
| seed | {seed} |
| training | {training} |
| cost | {measured.cpu_minutes:.0f} minutes of processor time on {measured.processors} cores |
| model | {config.n_layers} layers, {config.n_heads} heads of width {config.d_head}, d_model {config.d_model}, \
d_ff {config.d_ff}, {config.positions} positions, {config.norm_order}-norm, class from [CLS] |
| text | WordPiece, {bundle.tokenizer.vocab_size:,} entries, lower case; at most {config.max_len} tokens are read |
| size | {bundle.n_parameters:,} parameters, {measured.megabytes:.1f} MB in float16 |
| classes | {", ".join(f"{number} = {name}" for number, name in enumerate(bundle.labels))} |

## Measured quality

On the {measured.examples:,} reviews set aside: accuracy {measured.accuracy:.4f}, cross entropy \
{measured.loss_nats:.4f} nats a review. {measured.truncated:,} of them are longer than {config.max_len} tokens and \
were judged by their opening.
Before the weights were rounded to float16: accuracy {measured.full_accuracy:.4f}, {measured.full_loss_nats:.4f} nats.

To measure it again, let the recipe write the reviews set aside with `--held-out FILE.csv`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.csv

## Twenty everyday sentences

They were written for this card before the training, and neither trained on nor chosen by.

{sentence_table(bundle)}

## What it cannot do

- It knows film reviews in English. Other subjects and other languages are outside what it learned.
- It knows two classes: a neutral or factual sentence is forced into one of them, often with confidence.
- Irony, comparisons and double negation mislead it; so do sentences of a few words, of which it saw only crops.
- It reads no further than {config.max_len} tokens, so a verdict at the end of a long review is lost.
- It has the prejudices of its reviews: names of people and places can sway it.
"""
