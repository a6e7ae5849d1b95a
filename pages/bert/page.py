"""BERT: hidden words with their probabilities, layer by layer; pairs, segments, the tied matrix, the masking recipe."""

from pages.bert.fill import fill_part
from pages.bert.layers import layers_part
from pages.bert.pair import pair_part
from pages.bert.recipe import recipe_part
from pages.bert.segments import segments_part
from pages.bert.shared import EXAMPLE, look_through
from pages.bert.tied import tied_part
from pages.ui.header import header
from pages.ui.page_layout import parts_page

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

parts_page(
    "bert",
    lambda: header(kinds=("bert",), default="bert", example=EXAMPLE),
    PARTS,
    sites=SITES,
    glass=look_through,
)
