"""Norm and residual: a vector normalised, the stream as a sum, and what both are worth in a deep stack."""

from pages.norm.depth import depth_part
from pages.norm.residual import residual_part
from pages.norm.vector import vector_part
from pages.ui.header import header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page

PARTS = {"vector": vector_part, "residual": residual_part, "depth": lambda _: depth_part()}

parts_page("norm", lambda: header(kinds=READERS), PARTS, sites=("*norm.*", "*.residual", "*.output"))
