"""The card of the GPT of stories and captions: how well it foresees, and ten things it wrote, as they came.

Read next: gpt.py.
"""

from typing import Any

from transformer_core.bundle import Bundle
from transformer_core.recipes.card import list_of, write_card
from transformer_core.recipes.gpt_char_card import written_on

BEGINNINGS = (
    "Once upon a time, there was a",
    "One day, a little girl named",
    "Tom and his dog",
    "The bird was sad because",
    '"Can I play with you?" asked',
    "A man in a red shirt",
    "Two children are",
    "A woman is standing",
    "A brown dog",
    "The",
)
TOKENS_WRITTEN = 60


def gpt_card(
    bundle: Bundle, facts: dict[str, str], measured: dict[str, dict[str, Any]], *, full: dict[str, dict[str, Any]]
) -> str:
    """Return the card's Markdown.

    Args:
        bundle: as it lies on disk.
        facts: the rows of its table.
        measured: by the name of the text, what measure_text says of the bundle as it lies on disk.
        full: the same before the weights were rounded to float16.
    """
    quality = [
        f"{name}: {of['loss_nats']:.4f} nats a token, {of['nats_a_byte']:.4f} a byte, "
        f"perplexity {of['perplexity']:.2f}, {of['accuracy']:.1%} of {of['tokens']:,} tokens foreseen; "
        f"{full[name]['loss_nats']:.4f} nats a token before the weights were rounded to float16"
        for name, of in measured.items()
    ]
    command = f"""To measure it again, let the recipe write both texts with `--held-out FILE`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.stories.txt
    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.captions.txt"""
    written = "\n\n".join(
        f"```text\n{written_on(bundle, beginning, most=TOKENS_WRITTEN, seed=number)}\n```"
        for number, beginning in enumerate(BEGINNINGS)
    )
    limits = [
        "It knows short stories for children and captions of photographs, nothing else of the world.",
        f"It reads {bundle.config.max_len} tokens: what was said before that is lost to it.",
        "What it writes holds together for a sentence or two; who did what is soon forgotten.",
    ]
    return write_card(
        f"{bundle.name}: which word comes next?",
        "A masked decoder, small, trained from scratch on stories and captions, to be looked into.",
        facts,
        {
            "Measured quality": f"{list_of(quality)}\n\n{command}",
            "Ten beginnings, written on": "Drawn at temperature 1 with the seeds 0 to 9, as they came.\n\n" + written,
            "What it cannot do": list_of(limits),
        },
    )
