"""Translation: greedy decoding word by word, cross-attention, beam search and teacher forcing."""

from pages.glass.box import under_the_glass
from pages.translation.beam import show_beam
from pages.translation.cross import show_cross
from pages.translation.forced import show_forced
from pages.translation.search import show_search
from pages.translation.steps import show_steps
from pages.translation.toy import show_toy
from pages.translation.translated import translated
from pages.ui.header import View, header
from pages.ui.page_layout import parts_page

EXAMPLE = "A man in a red shirt is riding a horse."
PARTS = {
    "steps": show_steps,
    "cross": show_cross,
    "beam": show_beam,
    "search": lambda _: show_search(),
    "forced": show_forced,
    "toy": lambda _: show_toy(),
}


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show the box of tensors for the text and for the translation that the model writes."""
    under_the_glass(view, sites=sites, target_ids=lambda: translated(view).value.token_ids[:-1])


parts_page(
    "translation",
    lambda: header(kinds=("translation",), example=EXAMPLE),
    PARTS,
    sites=("decoder.*.cross_attention.*",),
    glass=look_through,
)
