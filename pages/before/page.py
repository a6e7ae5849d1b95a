"""Before Transformers: gates, states, predictions, attention, quality, gradients and times of recurrent models."""

from pages.before.forced import EXAMPLE
from pages.before.length import length_part
from pages.before.look import look_part
from pages.before.memory import gates_part, vector_part
from pages.before.next import next_part
from pages.before.one_step import step_part
from pages.before.reach import reach_part
from pages.before.time import time_part
from pages.glass.box import under_the_glass
from pages.ui.asking import ask_once
from pages.ui.header import View, header
from pages.ui.page_layout import parts_page
from transformer_core.analysis.before.alignments import words_read

STATES = ("encoder.*.hidden", "encoder.hidden", "recurrent.hidden")
SITES = {
    "gates": STATES,
    "step": STATES,
    "next": ("logits", *STATES),
    "vector": ("encoder.summary", *STATES),
    "look": ("decoder.alignment.weights", "decoder.context", *STATES),
    "length": ("encoder.summary", *STATES),
    "reach": ("encoder.*.candidate", *STATES),
    "time": STATES,
}
PARTS = {
    "reads": {"gates": gates_part, "step": step_part},
    "writes": {"next": next_part, "vector": vector_part},
    "attention": {"look": look_part, "length": length_part, "reach": reach_part, "time": time_part},
}


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show the box of tensors for the text, and for the translation that an encoder-decoder writes."""
    translates = view.bundle.kind == "seq2seq"
    under_the_glass(
        view, sites=sites, target_ids=(lambda: ask_once(words_read, **view.asked).value) if translates else None
    )


parts_page(
    "before",
    lambda: header(kinds=("seq2seq", "lm"), example=EXAMPLE),
    PARTS,
    sites=SITES,
    glass=look_through,
)
