"""The experiment of the page's part on neurons: the layer as convolutions of width 1 gives the same numbers."""

import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import Side, bars
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.number_format import significant
from pages.language import section, t
from transformer_core.analysis.feed_forward.convolution import as_convolution

ROUNDING = 1e-5  # of the greatest output; sums of some hundred products in 32 bits come this near
LITTLE = 1e-2


@experiment("feed_forward_convolution_open", "feed_forward.try_convolution")
def try_convolution(view: View, layer: int) -> None:
    """Ask whether the convolution differs once the positions go in backwards, and show both versions' differences."""
    answer = ask_once(as_convolution, prompt=view.prompt, layer=layer)
    found = answer.value
    *gate, inner, outer = (" × ".join(map(str, kernel)) for kernel in found.kernels)
    lines = [
        ("x = x.mT", "(d_model, pos)"),
        *(("gate = activation(conv1d(x, Wg[:, :, None], bg))", kernel) for kernel in gate),
        (f"x = {'gate * ' if gate else 'activation('}conv1d(x, W1[:, :, None], b1){'' if gate else ')'}", inner),
        ("x = conv1d(x, W2[:, :, None], b2).mT", outer),
    ]
    st.code("\n".join(f"{line:<48}  # {shape}" for line, shape in lines), language="python")
    options = options_of("feed_forward.convolution_{}", ("same", "little", "other"))
    cover = ask_first(
        section("feed_forward", "try_convolution"),
        options,
        name="feed_forward_convolution",
        about=f"{view.bundle.name} {layer} {view.encoding.text}",
    )
    share = found.reordered / max(found.greatest, 1e-12)
    cover.judge("same" if share <= ROUNDING else "little" if share <= LITTLE else "other")
    with cover.picture():
        chart = bars(
            tuple(f"{place} {label}" for place, label in enumerate(view.encoding.labels[: len(found.apart)])),
            {t("feed_forward.convolution_apart"): found.apart},
            across=t("feed_forward.token"),
            up=Side(t("feed_forward.convolution_apart"), format="~g"),
            hues=(HUES["residual"],),
            height=200,
        )
        show_chart(chart, answer, key="feed_forward_convolution", label=t("feed_forward.convolution_label"))
        say(
            t(
                "feed_forward.convolution_measured",
                greatest=significant(found.greatest, 3),
                difference=significant(found.difference),
                reordered=significant(found.reordered),
            )
        )
        say(section("feed_forward", "convolution_after"), small=True)
