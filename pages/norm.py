"""Norm and residual: a vector normalised, the stream as a sum, and what both are worth in a deep stack.

Read next: ui/norm.py.
"""

from pages.ui.header import header
from pages.ui.model_page import parts_page
from pages.ui.models import READERS
from pages.ui.norm import vector_part
from pages.ui.norm_depth import depth_part
from pages.ui.norm_residual import residual_part

PARTS = {"vector": vector_part, "residual": residual_part, "depth": lambda _: depth_part()}

parts_page("norm", lambda: header(kinds=READERS), PARTS, sites=("*norm.*", "*.residual", "*.output"))
