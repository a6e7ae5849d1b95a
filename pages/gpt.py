"""GPT: what comes next, how it is drawn, writing on, the answer layer by layer, and what the causal mask is for.

Read next: ui/gpt.py.
"""

from pages.ui.gpt import header_of_gpt
from pages.ui.gpt_draw import draw_part
from pages.ui.gpt_lens import lens_part
from pages.ui.gpt_mask import mask_part
from pages.ui.gpt_next import next_part
from pages.ui.gpt_write import write_part
from pages.ui.model_page import parts_page

PARTS = {"next": next_part, "draw": draw_part, "write": write_part, "lens": lens_part, "mask": mask_part}

parts_page("gpt", header_of_gpt, PARTS, sites=("logits", "decoder.final_norm.*", "decoder.*"))
