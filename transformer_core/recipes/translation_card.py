"""The card of a translation bundle: what it learned from, how well it translates, and sentences as they come out.

Read next: translation.py.
"""

from typing import Any

from transformer_core.bundle import Bundle
from transformer_core.generation import translate
from transformer_core.recipes.card import list_of, write_card

CAPTIONS = (
    "A man in a red shirt is riding a horse.",
    "Two dogs are playing on the beach.",
    "A little girl is eating an apple in the garden.",
    "Three people are waiting for the train.",
    "An old woman is reading a newspaper on a bench.",
    "A group of children is running after a ball.",
    "The cook is cutting vegetables in a large kitchen.",
    "A black cat sleeps on a wooden table.",
    "I would like to know what time it is.",
    "The committee rejected the proposal yesterday.",
)
EVERYDAY = (
    "Good morning.",
    "How are you?",
    "What is your name?",
    "My name is Anna.",
    "I am a student.",
    "She is my sister.",
    "Where is the station?",
    "I do not know.",
    "Please open the window.",
    "It is raining.",
    "I like this book.",
    "He is very tall.",
    "We went to school together.",
    "What time is it now?",
    "I want to drink some water.",
    "This car is too expensive.",
    "Do you speak Chinese?",
    "I will call you tomorrow.",
    "He lives in a big city.",
    "My father works in a hospital.",
    "Can you help me?",
    "I have never been to Beijing.",
    "The cat is under the table.",
    "She sings better than I do.",
    "If it rains tomorrow, I will stay at home.",
    "Who broke the window?",
    "Thank you for your letter.",
    "He got up early this morning.",
    "There are many people in the park.",
    "The minister announced new taxes on imported steel.",
)
INTRODUCTION = "The encoder and decoder of the paper, small, trained from scratch, to be looked into."
NOT_FOR = {
    "en-fr": [
        "It has seen nothing but captions of photographs: of other sentences it makes captions.",
        "Words that are not in the captions are cut into pieces, and translated by their sound at best.",
        "It was never taught to address anybody: questions and commands are foreign to it.",
    ],
    "en-zh": [
        "It has seen some nineteen thousand short everyday sentences: longer ones, and words outside them, fail.",
        "It lowers the case of what it reads; names that it has not seen become other names.",
        "It writes simplified characters, none that were rare in what it learned.",
    ],
}


def translation_card(
    bundle: Bundle,
    facts: dict[str, str],
    measured: dict[str, Any],
    *,
    pair: str,
    full_bleu: float,
    test: str,
    introduction: str = INTRODUCTION,
    limits: tuple[str, ...] = (),
) -> str:
    """Return the card's Markdown.

    Args:
        bundle: as it lies on disk.
        facts: the rows of its table.
        measured: what measure_translation says of the bundle as it lies on disk.
        pair: "en-fr" or "en-zh".
        full_bleu: of the same weights before they were rounded to float16.
        test: what it was measured on, in words.
        introduction: what the model is, in a sentence.
        limits: what it cannot do besides what no model of this pair can.
    """
    target = {"en-fr": "French", "en-zh": "Chinese"}[pair]
    sentences = CAPTIONS if pair == "en-fr" else EVERYDAY
    lines = [f"{source} → {out}" for source, out in zip(sentences, translate(bundle, sentences), strict=True)]
    source_file, target_file = (f"FILE.{side}" for side in pair.split("-"))
    quality = f"""On {test} ({measured["sentences"]:,} sentences, beam {measured["beam"]}): \
BLEU {measured["bleu"]:.2f}, chrF {measured["chrf"]:.2f} (sacrebleu, raw text; `{measured["bleu_signature"]}`).
Before the weights were rounded to float16: BLEU {full_bleu:.2f}.

To measure it again, let the recipe write the test sentences with `--held-out FILE`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} {source_file} {target_file}"""
    return write_card(
        f"{bundle.name}: from English to {target}",
        introduction,
        facts,
        {
            "Measured quality": quality,
            f"{len(lines)} sentences of our own, as they come out": list_of(lines),
            "What it cannot do": list_of([*NOT_FOR[pair], *limits]),
        },
    )
