"""BERT: hidden words with their probabilities, layer by layer; pairs, segments, the tied matrix, the masking recipe.

Read next: ui/bert.py.
"""

from pages.ui.bert import EXAMPLE, look_through
from pages.ui.bert_fill import fill_part
from pages.ui.bert_layers import layers_part
from pages.ui.bert_pair import pair_part
from pages.ui.bert_recipe import recipe_part
from pages.ui.bert_segments import segments_part
from pages.ui.bert_tied import tied_part
from pages.ui.header import header
from pages.ui.model_page import parts_page

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
