"""The card of the GPT of characters: what it learned from, how well it foresees, and ten things it wrote, as they came.

Form: Mitchell et al. 2019 (model cards). Read next: gpt_char.py.
"""

from dataclasses import dataclass
from typing import Any

import torch

from transformer_core.bundle import Bundle
from transformer_core.generation import sample
from transformer_core.models import Gpt
from transformer_core.recipes.card import list_of, training_facts, write_card
from transformer_core.recipes.command import Trained
from transformer_core.training.runs.spec import RunSpec

BEGINNINGS = ("ROMEO:\n", "First Citizen:\n", "To be", "My lord, ", "O ", "The king ", "KING ", "What ", "I ", "\n")
CHARACTERS_WRITTEN = 160


@dataclass(frozen=True)
class Measured:
    """What a run of the recipe measured.

    Args:
        held_out: what measure_text says of the bundle as it lies on disk in float16.
        full_loss_nats: of the same weights before they were rounded to float16.
        learned: characters that were trained on.
        trained: what training cost.
        megabytes: of the weights on disk, in units of 1,000,000 bytes.
    """

    held_out: dict[str, Any]
    full_loss_nats: float
    learned: int
    trained: Trained
    megabytes: float


def written_on(bundle: Bundle, beginning: str, *, most: int, seed: int) -> str:
    """Return a beginning and what the model writes after it, drawn at temperature 1 from this seed."""
    assert isinstance(bundle.model, Gpt)
    token_ids = torch.tensor([bundle.tokenizer.encode(beginning).ids])
    generator = torch.Generator().manual_seed(seed)
    steps = sample(bundle.model, token_ids, most=most, generator=generator)
    return beginning + bundle.tokenizer.decode([step.token_id for step in steps])


def gpt_char_card(bundle: Bundle, measured: Measured, *, spec: RunSpec, command: str, data_file: str) -> str:
    """Return the card's Markdown.

    Args:
        bundle: as it lies on disk.
        measured: by the recipe.
        spec: what was trained, and how.
        command: that trained it.
        data_file: name of the text's file.
    """
    held_out = measured.held_out
    batch = f"{spec.training.batch_size} windows of {bundle.config.max_len} characters"
    data = f"the first {measured.learned:,} characters trained on, the last {held_out['tokens'] + 1:,} set aside"
    quality = f"""On the part set aside: {held_out["loss_nats"]:.4f} nats a character, {held_out["nats_a_byte"]:.4f} a \
byte, perplexity {held_out["perplexity"]:.3f}, {held_out["accuracy"]:.1%} of the characters foreseen.
Before the weights were rounded to float16: {measured.full_loss_nats:.4f} nats.

To measure it again, let the recipe write that part with `--held-out FILE.txt`, and then

    python -m transformer_core.evaluation assets/checkpoints/{bundle.name} FILE.txt"""
    samples = "\n\n".join(
        f"```text\n{written_on(bundle, beginning, most=CHARACTERS_WRITTEN, seed=number)}\n```"
        for number, beginning in enumerate(BEGINNINGS)
    )
    limits = [
        "It knows one author's English in verse, and nothing of the world.",
        f"It reads {bundle.config.max_len} characters: what was said before that is lost to it.",
        "Words are put together from characters, so some of them do not exist; sense rarely lasts for a line.",
    ]
    return write_card(
        f"{bundle.name}: which character comes next?",
        "A small masked decoder that was trained from scratch on one text, to be looked into.",
        {
            "data": f"Tiny Shakespeare (`{data_file}`): {data}",
            "licence": "the text is in the public domain; so are these weights",
            "recipe": f"`{command}`",
            **training_facts(bundle, measured.trained, spec.training, batch=batch, megabytes=measured.megabytes),
        },
        {
            "Measured quality": quality,
            "Ten beginnings, written on": f"Drawn at temperature 1 with the seeds 0 to 9, as they came.\n\n{samples}",
            "What it cannot do": list_of(limits),
        },
    )
