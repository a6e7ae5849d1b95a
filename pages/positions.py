"""Positions: how a Transformer learns the order of its tokens, what the formula's slip changes, what order is worth.

Read next: figures/positions.py.
"""

import streamlit as st

from pages.ui.glass import under_the_glass
from pages.ui.header import header
from pages.ui.language import section, t
from pages.ui.models import READERS
from pages.ui.positions import matrix_part
from pages.ui.positions_exponent import exponent_part
from pages.ui.positions_order import order_part
from pages.ui.positions_schemes import schemes_part
from pages.ui.positions_sum import sum_part
from pages.ui.url import choose

PARTS = ("matrix", "exponent", "schemes", "sum", "order")

view = header(kinds=READERS)
st.header(t("positions.heading"), anchor=False)
st.markdown(section("positions", "look"))
part = choose(
    t("positions.part"),
    {name: t(f"positions.part_{name}") for name in PARTS},
    name="positions_part",
    default="matrix",
    collapsed=True,
)
st.markdown(section("positions", f"part_{part}"))
if part == "matrix":
    matrix_part()
elif part == "exponent":
    exponent_part()
elif part == "schemes":
    schemes_part(view)
elif part == "sum":
    sum_part(view)
else:
    order_part(view)
under_the_glass(view, sites=("*position_embedding", "*embedding.*"))
with st.expander(t("story.why"), icon=":material/school:"):
    st.markdown(section("positions", "why"))
