"""Encoder and classifier: the verdict layer by layer, which tokens it rests on, and how well it is calibrated."""

from pages.encoder.agreement import AGREE
from pages.encoder.calibration import SURE
from pages.encoder.edit import EDIT
from pages.encoder.layers import LAYERS
from pages.encoder.sum import SUM
from pages.encoder.tokens import TOKENS
from pages.kit.header import header
from pages.room import Page

SITES = ("class_logits", "*_embedding", "encoder.final_norm.normalized", "*.residual")
ENCODER = Page("encoder", header, (LAYERS, SUM, TOKENS, AGREE, EDIT, SURE), sites=SITES)

if __name__ == "__main__":
    ENCODER.show()
