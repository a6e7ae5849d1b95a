"""Feed-forward: activations with the sentence's own neurons on them, GELU as a coin, neurons and what they are worth.

Read next: ui/feed_forward.py.
"""

import streamlit as st

from pages.ui.feed_forward import curves_part
from pages.ui.feed_forward_coin import coin_part
from pages.ui.feed_forward_dead import dead_part
from pages.ui.feed_forward_neurons import neurons_part
from pages.ui.feed_forward_swap import swap_part
from pages.ui.glass import under_the_glass
from pages.ui.header import header
from pages.ui.language import section, t
from pages.ui.models import READERS
from pages.ui.url import choose

PARTS = ("curves", "bernoulli", "neurons", "dead", "swap")

view = header(kinds=READERS)
st.header(t("feed_forward.heading"), anchor=False)
part = choose(
    t("feed_forward.part"),
    {name: t(f"feed_forward.part_{name}") for name in PARTS},
    name="feed_forward_part",
    default="curves",
    collapsed=True,
)
st.markdown(section("feed_forward", f"look_{part}"))
if part == "curves":
    curves_part(view)
elif part == "bernoulli":
    coin_part()
elif part == "neurons":
    neurons_part(view)
elif part == "dead":
    dead_part(view)
else:
    swap_part(view)
under_the_glass(view, sites=("*.feed_forward.activation", "*.feed_forward.pre_activation"))
with st.expander(t("story.why"), icon=":material/school:"):
    st.markdown(section("feed_forward", "why"))
