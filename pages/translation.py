"""Translation: a sentence written in another language word by word, where it looks, and what searching finds.

Read next: ui/translation.py.
"""

from pages.ui.glass import under_the_glass
from pages.ui.header import View, header
from pages.ui.model_page import parts_page
from pages.ui.translation import translated
from pages.ui.translation_beam import show_beam
from pages.ui.translation_cross import show_cross
from pages.ui.translation_forced import show_forced
from pages.ui.translation_search import show_search
from pages.ui.translation_steps import show_steps
from pages.ui.translation_toy import show_toy

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
    """Put the translation that the model writes under the glass as well."""
    under_the_glass(view, sites=sites, target_ids=lambda: translated(view).value.token_ids[:-1])


parts_page(
    "translation",
    lambda: header(kinds=("translation",), default="translation-en-fr", example=EXAMPLE),
    PARTS,
    sites=("decoder.*.cross_attention.*",),
    glass=look_through,
)
