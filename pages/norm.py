"""Norm and residual: a vector normalised, the stream as a sum, and what both are worth in a deep stack.

Read next: ui/norm.py.
"""

import streamlit as st

from pages.ui.glass import under_the_glass
from pages.ui.header import header
from pages.ui.language import section, t
from pages.ui.models import READERS
from pages.ui.norm import vector_part
from pages.ui.norm_depth import depth_part
from pages.ui.norm_residual import residual_part
from pages.ui.url import choose

PARTS = ("vector", "residual", "depth")

view = header(kinds=READERS)
st.header(t("norm.heading"), anchor=False)
part = choose(
    t("norm.part"),
    {name: t(f"norm.part_{name}") for name in PARTS},
    name="norm_part",
    default="vector",
    collapsed=True,
)
st.markdown(section("norm", f"look_{part}"))
if part == "vector":
    vector_part(view)
elif part == "residual":
    residual_part(view)
else:
    depth_part()
under_the_glass(view, sites=("*norm.*", "*.residual", "*.output"))
with st.expander(t("story.why"), icon=":material/school:"):
    st.markdown(section("norm", "why"))
