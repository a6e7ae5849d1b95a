"""Encoder and classifier: the verdict layer by layer, which tokens it rests on, and how well it is calibrated."""

from pages.encoder.agreement import agreement_part
from pages.encoder.edit import edit_part
from pages.encoder.layers import layers_part
from pages.encoder.sum import sum_part
from pages.encoder.sure import sure_part
from pages.encoder.tokens import tokens_part
from pages.ui.header import header
from pages.ui.page_layout import parts_page

PARTS = {
    "layers": layers_part,
    "sum": sum_part,
    "tokens": tokens_part,
    "agree": agreement_part,
    "edit": edit_part,
    "sure": sure_part,
}
SITES = ("class_logits", "*_embedding", "encoder.final_norm.normalized", "*.residual")

parts_page("encoder", header, PARTS, sites=SITES)
