"""BERT: hidden words, layer by layer, why this word; pairs, segments, tied matrix, recipe; names, answers."""

from dataclasses import replace

from pages.bert.answers import ANSWERS
from pages.bert.fill import FILL
from pages.bert.hidden_words import LEAST_TOKENS
from pages.bert.layers import LAYERS
from pages.bert.names import NAMES, needs_other
from pages.bert.pair import PAIR
from pages.bert.recipe import RECIPE
from pages.bert.segments import SEGMENTS
from pages.bert.tied import TIED
from pages.bert.why import WHY
from pages.glass.box import under_the_glass
from pages.kit.header import View, header
from pages.room import Page, Part

EXAMPLE = "A man in a red shirt is riding a horse."


def _of_bert(part: Part) -> Part:
    """Return a part that says in a line what it needs where the model guesses no words."""
    return replace(part, show=lambda view: part.show(view) if view.bundle.kind == "bert" else needs_other(view, "bert"))


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show what the part reads under the glass; ids that no text encodes to count as edited and have no script."""
    encoding, n_tokens = view.encoding, max(LEAST_TOKENS, len(view.encoding))
    spelled = view.bundle.tokenizer.encode(encoding.text, encoding.pair, max_len=n_tokens)
    edits = {} if spelled.ids == encoding.ids else {"encoder.embedding.token_ids": lambda ids: ids}
    under_the_glass(view, sites=sites, edits=edits)


BERT = Page(
    "bert",
    lambda: header(kinds=("bert", "tagger", "answerer"), example=EXAMPLE),
    (*map(_of_bert, (FILL, LAYERS, WHY, TIED, RECIPE, PAIR, SEGMENTS)), NAMES, ANSWERS),
    glass=look_through,
)

if __name__ == "__main__":
    BERT.show()
