"""Translation: greedy decoding word by word, cross-attention, why this word, beam search and teacher forcing."""

from pages.glass.box import under_the_glass
from pages.kit.header import View, header
from pages.room import Page
from pages.translation.beam import BEAM
from pages.translation.cross import CROSS
from pages.translation.forced import FORCED
from pages.translation.search import SEARCH
from pages.translation.steps import STEPS
from pages.translation.toy import TOY
from pages.translation.translated import translated
from pages.translation.why import WHY

EXAMPLE = "A man in a red shirt is riding a horse."


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show the box of tensors for the text and for the translation that the model writes."""
    under_the_glass(view, sites=sites, target_ids=lambda: translated(view).value.token_ids[:-1])


TRANSLATION = Page(
    "translation",
    lambda: header(kinds=("translation",), example=EXAMPLE),
    (STEPS, CROSS, WHY, BEAM, SEARCH, FORCED, TOY),
    sites=("decoder.*.cross_attention.*",),
    glass=look_through,
)

if __name__ == "__main__":
    TRANSLATION.show()
