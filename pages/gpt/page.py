"""GPT: the next token, how it is sampled, writing on, verse, the answer layer by layer, and the causal mask."""

from pages.gpt.draw import draw_part
from pages.gpt.lens import lens_part
from pages.gpt.mask import mask_part
from pages.gpt.next import next_part
from pages.gpt.text import header_of_gpt
from pages.gpt.verse import verse_part
from pages.gpt.write import write_part
from pages.ui.page_layout import parts_page

PARTS = {
    "next": next_part,
    "draw": draw_part,
    "write": write_part,
    "verse": verse_part,
    "lens": lens_part,
    "mask": mask_part,
}

parts_page("gpt", header_of_gpt, PARTS, sites=("logits", "decoder.final_norm.*", "decoder.*"))
