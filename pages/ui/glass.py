"""Under the glass: any recorded tensor with its shape, formula, numbers and the line of code that computes it.

Read next: exports.py.
"""

import streamlit as st

from pages.ui.language import t
from transformer_core.analysis.source import tapped_at
from transformer_core.probe import Trace


def under_the_glass(trace: Trace) -> None:
    """Let a person pick a tensor of the trace and show what it is."""
    box = st.expander(t("glass.heading"), icon=":material/search:", key="glass_open", bind="query-params")
    if not box.open:
        return
    with box:
        name = st.selectbox(t("glass.tensor"), list(trace), key="glass", bind="query-params")
        tensor, site = trace[name].float(), trace.site(name)
        axes = ", ".join(f"{axis} {size}" for axis, size in zip(site.axes, tensor.shape, strict=True))
        st.markdown(t("glass.meaning", meaning=t(f"site.{name.rpartition('.')[2]}"), source=site.source))
        st.latex(site.formula)
        finite = tensor[tensor.isfinite()]
        numbers = {"minimum": finite.min(), "mean": finite.mean(), "maximum": finite.max()} if finite.numel() else {}
        shape_place, *places = st.columns([2, 1, 1, 1])
        shape_place.metric(t("glass.shape"), f"({axes})")
        for (key, value), place in zip(numbers.items(), places, strict=False):
            place.metric(t(f"glass.{key}"), f"{float(value):.4g}")
        if masked := tensor.numel() - finite.numel():
            st.caption(t("glass.masked", count=masked))
        for line in tapped_at(name)[:1]:
            st.caption(f"{line.path}:{line.number}")
            st.code(line.code, language="python")
