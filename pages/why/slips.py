"""Common slips: each as it is often written and as it is right, both computed on the typed text, side by side."""

import math

import numpy as np
import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import Side, dots
from pages.kit.asking import Answer, ask_once
from pages.kit.controls import Choice
from pages.kit.experiment import options_of, say
from pages.kit.models import open_bundle
from pages.kit.number_format import markdown_table, significant
from pages.language import t
from pages.why.frame import Desk, Finding, link_to, question
from transformer_core.analysis.why import slips
from transformer_core.analysis.why.slips import CommonSlips, common_slips

WIDE = 0.1  # of the right result's length
FORMULAS = {  # as it is often written, and as it is right
    "exponent": (r"\sin\frac{pos}{10000^{2i/d}},\ i=0,2,4,\dots", r"\sin\frac{pos}{10000^{2i/d}},\ i=0,1,2,\dots"),
    "counted": (r"x_{pos}+pos", r"x_{pos}+PE(pos)"),
    "scale": (r"\mathrm{softmax}\frac{QK^\top}{\sqrt{d_{model}}}", r"\mathrm{softmax}\frac{QK^\top}{\sqrt{d_{head}}}"),
    "hidden": (r"\mathrm{softmax}(-10^9,\dots,-10^9)=\tfrac1n", r"\mathrm{softmax}(-\infty,\dots,-\infty):=0"),
    "mixed": (r"\texttt{mask.repeat(n\_heads, 1, 1)}", r"\texttt{mask.repeat\_interleave(n\_heads, 0)}"),
    "padding": (r"\frac1n\sum_{i=1}^{n}x_i", r"\frac{\sum_i real_i\,x_i}{\sum_i real_i}"),
    "norm": (r"g\,\frac{x-\mu}{s_{d-1}+\epsilon}+b", r"g\,\frac{x-\mu}{\sqrt{\sigma^2_d+\epsilon}}+b"),
    "gelu": (r"\Phi(x)\cdot 0+(1-\Phi(x))\,x", r"\Phi(x)\,x+(1-\Phi(x))\cdot 0"),
    "cosine": (r"x\cdot y", r"\frac{x\cdot y}{\lVert x\rVert\,\lVert y\rVert}"),
    "loss": (r"-\ln\mathrm{softmax}(\mathrm{softmax}(z))_c", r"-\ln\mathrm{softmax}(z)_c"),
    "head": (r"\tfrac x2\left(1+\tanh\sqrt{\tfrac2\pi}(x+0.044715x^3)\right)", r"x\,\Phi(x)"),
    "gru": (r"\tanh(Wx+U(r\odot h)+b)", r"\tanh(Wx+b+r\odot(Uh+c))"),
}
PLACES = {  # where each is measured in full: the page, and what its link says
    "exponent": ("positions", {"positions_part": "exponent"}),
    "counted": ("positions", {"positions_part": "sum", "positions_counted_open": "on"}),
    "scale": ("why", {"why": "scaling"}),
    "hidden": ("masks", {"masks_part": "paint"}),
    "mixed": ("masks", {"masks_part": "batch", "masks_mixed_open": "on"}),
    "padding": ("encoder", {"encoder_part": "sum", "encoder_padding_open": "on"}),
    "norm": ("norm", {"norm_part": "vector"}),
    "gelu": ("feed_forward", {"feed_forward_part": "bernoulli"}),
    "cosine": ("embeddings", {"embeddings_part": "sentence", "embeddings_dot_open": "on"}),
    "loss": ("train", {}),
    "head": ("bert", {"bert_part": "tied", "bert_gelu_open": "on"}),
    "gru": ("before", {"before_part": "gates", "before_printed_open": "on"}),
}
SLIP = Choice("why_slip", slips.SLIPS, label="why.slips.slip", words="why.slips.name_{}", form="list")


def outcome_of(found: CommonSlips) -> str:
    """Return for how many of the slips the difference is wide: few, half or most."""
    share = found.many(WIDE) / len(found.names)
    return "few" if share < 1 / 3 else "half" if share < 2 / 3 else "most"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else significant(value, 3)


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{significant(100 * share, 3)}%"


def _show_all(desk: Desk, answer: Answer[CommonSlips], slip: str) -> None:
    """Show all slips: how far each moves what is computed, as a chart and as a table."""
    found, names = answer.value, options_of("why.slips.name_{}", slips.SLIPS)
    shown = [place for place, share in enumerate(found.apart) if share > 0]
    labels = [str(place + 1) for place in shown]
    chart = dots(
        labels,
        found.apart[shown],
        labels,
        across=desk.word("slip"),
        up=Side(desk.word("apart"), log=True),
        details=[f"{names[found.names[place]]}: {_percent(found.apart[place])}" for place in shown],
        rules={desk.word("wide"): WIDE},
        hues=(HUES["key"],) * max(1, len(labels)),
        height=300,
    )
    desk.chart(chart, answer, "all")
    rows = [
        (str(number), f"**{names[name]}**" if name == slip else names[name], *map(_number, pair), _percent(share))
        for number, (name, *pair, share) in enumerate(
            zip(found.names, found.written, found.right, found.apart, strict=True), 1
        )
    ]
    head = [desk.word(column) for column in ("slip", "written", "right", "difference")]
    say(markdown_table(["", *head], rows, right=3))


def _experiment(desk: Desk) -> Finding:
    with desk.controls:
        slip = SLIP.show()
        for version, formula in zip(("written", "right"), FORMULAS[slip], strict=True):
            st.caption(desk.word(version))
            st.latex(formula)
        st.markdown(desk.word(f"what_{slip}"))
        page, said = PLACES[slip]
        link_to(page, desk.word("link", page=t(f"nav.{page}")), **said)
    asked = {"bert": open_bundle("bert"), "gru": open_bundle("seq2seq-en-fr")}
    answer = ask_once(common_slips, prompt=desk.view.prompt, **asked)
    found = answer.value
    at = found.names.index(slip)
    with desk.picture:
        pair = {"written": _number(found.written[at]), "right": _number(found.right[at])}
        say(desk.word("numbers", share=_percent(found.apart[at]), **pair))
        _show_all(desk, answer, slip)
    most = int(np.nan_to_num(found.apart).argmax())
    numbers = {
        "many": found.many(WIDE),
        "count": len(found.names),
        "most": t(f"why.slips.name_{found.names[most]}"),
        "share": _percent(float(found.apart[most])),
        "least": t(f"why.slips.name_{found.names[int(np.nanargmin(found.apart))]}"),
    }
    return Finding(outcome_of(found), {name: str(value) for name, value in numbers.items()})


SLIPS = question("slips", ("few", "half", "most"), _experiment, group="slips")
