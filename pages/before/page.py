"""Before Transformers: the gates, summary, attention, gradients and times of a recurrent translator."""

from pages.before.look import look_part
from pages.before.memory import gates_part, vector_part
from pages.before.reach import reach_part
from pages.before.time import time_part
from pages.glass.box import under_the_glass
from pages.ui.asking import ask_once
from pages.ui.header import View, header
from pages.ui.page_layout import parts_page
from transformer_core.analysis.before.alignments import words_read

EXAMPLE = "A man in a red shirt is riding a horse."
STATES = ("encoder.*.hidden", "encoder.hidden")
SITES = {
    "gates": STATES,
    "vector": ("encoder.summary",),
    "look": ("decoder.alignment.weights", "decoder.context"),
    "reach": ("encoder.*.candidate", "encoder.hidden"),
    "time": STATES,
}
PARTS = {"gates": gates_part, "vector": vector_part, "look": look_part, "reach": reach_part, "time": time_part}


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show the box of tensors for the text and for the translation that the model writes."""
    under_the_glass(view, sites=sites, target_ids=lambda: ask_once(words_read, **view.asked).value)


parts_page(
    "before",
    lambda: header(kinds=("seq2seq",), example=EXAMPLE),
    PARTS,
    sites=SITES,
    glass=look_through,
)
