"""Norm and residual: a vector normalised, the stream as a sum, two orders of the norm, and both in a deep stack."""

from pages.glass.box import under_the_glass
from pages.kit.asking import ask_once
from pages.kit.header import View, header
from pages.kit.models import READERS
from pages.norm.depth import DEPTH
from pages.norm.orders import ORDERS
from pages.norm.residual import RESIDUAL
from pages.norm.vector import VECTOR
from pages.room import Page
from transformer_core.analysis.before.alignments import words_read


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show the box of tensors for the text; of a model that translates, for the translation that it writes, too."""
    if view.bundle.kind == "translation":
        of_encoder = tuple(f"encoder.{site}" for site in sites)
        under_the_glass(view, sites=of_encoder, target_ids=lambda: ask_once(words_read, prompt=view.prompt).value)
    else:
        under_the_glass(view, sites=sites)


SITES = ("*norm.*", "*.residual", "*.output")
NORM = Page("norm", lambda: header(kinds=READERS), (VECTOR, RESIDUAL, ORDERS, DEPTH), sites=SITES, glass=look_through)

if __name__ == "__main__":
    NORM.show()
