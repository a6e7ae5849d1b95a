"""BERT: hidden words, layer by layer; pairs, segments, the tied matrix, the masking recipe; names and answers."""

from pages.bert.answers import answers_part
from pages.bert.fill import fill_part
from pages.bert.hidden_words import LEAST_TOKENS
from pages.bert.layers import layers_part
from pages.bert.names import names_part, needs_other
from pages.bert.pair import pair_part
from pages.bert.recipe import recipe_part
from pages.bert.segments import segments_part
from pages.bert.tied import tied_part
from pages.glass.box import under_the_glass
from pages.ui.header import View, header
from pages.ui.page_layout import Part, parts_page

EXAMPLE = "A man in a red shirt is riding a horse."


def _of_bert(part: Part) -> Part:
    """Return a part that says in a line what it needs where the model guesses no words."""
    return lambda view: part(view) if view.bundle.kind == "bert" else needs_other(view, "bert")


PARTS = {
    "gap": {
        "fill": _of_bert(fill_part),
        "layers": _of_bert(layers_part),
        "tied": _of_bert(tied_part),
        "recipe": _of_bert(recipe_part),
    },
    "pair": {"pair": _of_bert(pair_part), "segments": _of_bert(segments_part)},
    "further": {"names": names_part, "answers": answers_part},
}
SITES = {
    "layers": ("*.residual",),
    "pair": ("pooled", "*.class_logits"),
    "segments": ("*.segment_embedding",),
    "tied": ("mlm_head.*",),
    "names": ("token_logits",),
    "answers": ("span_logits",),
}


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show what the part reads under the glass; ids that no text encodes to count as edited and have no script."""
    encoding, n_tokens = view.encoding, max(LEAST_TOKENS, len(view.encoding))
    spelled = view.bundle.tokenizer.encode(encoding.text, encoding.pair, max_len=n_tokens)
    edits = {} if spelled.ids == encoding.ids else {"encoder.embedding.token_ids": lambda ids: ids}
    under_the_glass(view, sites=sites, edits=edits)


parts_page(
    "bert",
    lambda: header(kinds=("bert", "tagger", "answerer"), example=EXAMPLE),
    PARTS,
    sites=SITES,
    glass=look_through,
)
