"""BERT: hidden words with their probabilities, layer by layer; pairs, segments, the tied matrix, the masking recipe."""

from pages.bert.fill import fill_part
from pages.bert.hidden_words import LEAST_TOKENS
from pages.bert.layers import layers_part
from pages.bert.pair import pair_part
from pages.bert.recipe import recipe_part
from pages.bert.segments import segments_part
from pages.bert.tied import tied_part
from pages.glass.box import under_the_glass
from pages.ui.header import View, header
from pages.ui.page_layout import parts_page

EXAMPLE = "A man in a red shirt is riding a horse."
PARTS = {
    "fill": fill_part,
    "layers": layers_part,
    "pair": pair_part,
    "segments": segments_part,
    "tied": tied_part,
    "recipe": recipe_part,
}
SITES = {
    "layers": ("*.residual",),
    "pair": ("pooled", "*.class_logits"),
    "segments": ("*.segment_embedding",),
    "tied": ("mlm_head.*",),
}


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show what the part reads under the glass; ids that no text encodes to count as edited and have no script."""
    encoding, n_tokens = view.encoding, max(LEAST_TOKENS, len(view.encoding))
    spelled = view.bundle.tokenizer.encode(encoding.text, encoding.pair, max_len=n_tokens)
    edits = {} if spelled.ids == encoding.ids else {"encoder.embedding.token_ids": lambda ids: ids}
    under_the_glass(view, sites=sites, edits=edits)


parts_page(
    "bert",
    lambda: header(kinds=("bert",), example=EXAMPLE),
    PARTS,
    sites=SITES,
    glass=look_through,
)
