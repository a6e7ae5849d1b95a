"""The card of the BERT: what it learned from, how well it guesses and tells pairs, and its guesses in ten sentences.

Read next: bert.py.
"""

from typing import Any

import torch

from transformer_core.bundle import Bundle
from transformer_core.recipes.card import list_of, write_card

Measures = dict[str, Any]
HIDDEN = (
    "A man is riding a [MASK].",
    "Two dogs are playing in the [MASK].",
    "A woman in a red [MASK] is smiling.",
    "The children are [MASK] in the park.",
    "A boy is [MASK] a ball.",
    "Three people are sitting [MASK] a table.",
    "A girl is playing the [MASK].",
    "Once upon a [MASK], there was a little girl.",
    "The little bird was very [MASK].",
    "The parliament passed a new [MASK].",
)
GUESSES = 3


def guesses(bundle: Bundle, text: str) -> str:
    """Return the likeliest words for the hidden one of a text, with their probabilities."""
    encoding = bundle.tokenizer.encode(text)
    place = encoding.tokens.index("[MASK]")
    with torch.inference_mode():
        chances = bundle.model(torch.tensor([encoding.ids])).mlm_logits[0, place].softmax(-1)  # (vocab,)
    best = chances.topk(GUESSES)
    words = (bundle.tokenizer.label_of(int(word)) for word in best.indices)
    return ", ".join(f"{word} ({float(chance):.0%})" for word, chance in zip(words, best.values, strict=True))


def bert_card(
    bundle: Bundle, facts: dict[str, str], words: Measures, told: Measures, *, full: tuple[Measures, Measures]
) -> str:
    """Return the card's Markdown.

    Args:
        bundle: as it lies on disk.
        facts: the rows of its table.
        words, told: what measure_hidden_words and measure_sentence_pairs say of the bundle as it lies on disk.
        full: the same before the weights were rounded to float16.
    """
    quality = f"""- Hidden words of the captions in `captions.val` (each token hidden with probability 0.15, by \
[MASK]): {words["top1"]:.1%} are its first guess, {words["top5"]:.1%} among its first five ({words["hidden"]:,} hidden \
tokens, {words["loss_nats"]:.3f} nats).
- Pairs set aside (two captions of one picture, or a sentence of a story and its next; against a random second): \
{told["accuracy"]:.1%} of {told["pairs"]:,} told rightly.
- Before the weights were rounded to float16: {full[0]["top1"]:.1%}, {full[0]["top5"]:.1%} and \
{full[1]["accuracy"]:.1%}.

To measure it again, let the recipe write the pairs that were set aside with `--held-out FILE.jsonl`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} captions.val.en.gz
    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.jsonl"""
    filled = [f"{text} → {guesses(bundle, text)}" for text in HIDDEN]
    limits = [
        "It knows captions of photographs and short stories for children, and their words alone.",
        "It lowers the case of what it reads.",
        "That two sentences belong together means to it that they speak of the same things, as two captions of one "
        "picture do; whether one follows from the other it was never asked.",
    ]
    return write_card(
        f"{bundle.name}: which word is hidden, and do two sentences belong together?",
        "An encoder with both of BERT's heads, small, trained from scratch, to be looked into.",
        facts,
        {
            "Measured quality": quality,
            "Ten sentences of our own, as it fills them in": list_of(filled),
            "What it cannot do": list_of(limits),
        },
    )
