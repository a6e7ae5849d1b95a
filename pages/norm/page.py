"""Norm and residual: a vector normalised, the stream as a sum, two orders of the norm, and both in a deep stack."""

from pages.glass.box import under_the_glass
from pages.norm.depth import depth_part
from pages.norm.orders import orders_part
from pages.norm.residual import residual_part
from pages.norm.vector import vector_part
from pages.ui.asking import ask_once
from pages.ui.header import View, header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page
from transformer_core.analysis.before.alignments import words_read

SITES = ("*norm.*", "*.residual", "*.output")
PARTS = {
    "vector": vector_part,
    "residual": residual_part,
    "orders": orders_part,
    "depth": lambda _: depth_part(),
}


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show the box of tensors for the text; of a model that translates, for the translation that it writes, too."""
    if view.bundle.kind == "translation":
        of_encoder = tuple(f"encoder.{site}" for site in sites)
        under_the_glass(view, sites=of_encoder, target_ids=lambda: ask_once(words_read, **view.asked).value)
    else:
        under_the_glass(view, sites=sites)


parts_page("norm", lambda: header(kinds=READERS), PARTS, sites=SITES, glass=look_through)
