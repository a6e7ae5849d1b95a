"""The part on dead units: neurons that no token of the built-in corpus brings above 0."""

import streamlit as st

from pages.feed_forward.figures.neurons import quiet_chart
from pages.ui.asking import ask_once
from pages.ui.boxes import ask_first, say
from pages.ui.charts import show_chart
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.number_format import markdown_table
from transformer_core.analysis.feed_forward.neurons import CorpusNeurons, corpus_neurons

SENTENCES = 300


@st.fragment
def dead_part(view: View) -> None:
    """Ask how many neurons never rise above 0, then count them by layer."""
    options = {name: t(f"feed_forward.dead_{name}") for name in ("none", "few", "many")}
    question = section("feed_forward", "try_dead").format(
        count=SENTENCES, neurons=view.bundle.config.n_layers * view.bundle.config.d_ff
    )
    cover = ask_first(question, options, name="feed_forward_dead", about=view.bundle.name)
    with st.spinner(t("feed_forward.reading", count=SENTENCES)):
        answer = ask_once(corpus_neurons, bundle=view.bundle, sentences=SENTENCES)
    found = answer.value
    share = found.never_above_zero.sum() / (found.neurons * len(found.never_above_zero))
    cover.judge("none" if share == 0 else "few" if share < 0.05 else "many")
    with cover.picture():
        chart, table = st.columns([3, 2], gap="large")
        with chart:
            show_chart(
                quiet_chart(found.bands, found.within, found.neurons, strings("feed_forward"), band=found.band),
                answer,
                key="feed_forward_quiet",
                stem="feed_forward_quiet",
                label=t("feed_forward.quiet_label"),
            )
        with table:
            say(_table(found))
            say(
                t(
                    "feed_forward.dead_rule",
                    tokens=f"{found.tokens:,}",
                    count=found.sentences,
                    language=t(f"feed_forward.corpus_{found.language}"),
                    band=f"{found.band:g}",
                ),
                small=True,
            )
        say(section("feed_forward", "dead_after"))


def _table(found: CorpusNeurons) -> str:
    head = [t("feed_forward.layer"), t("feed_forward.never_above"), t("feed_forward.in_band", band=f"{found.band:g}")]
    rows = [
        (str(layer), *(f"{count} / {found.neurons} ({count / found.neurons:.1%})" for count in counts))
        for layer, counts in enumerate(zip(found.never_above_zero, found.in_band, strict=True))
    ]
    return markdown_table(head, rows, right=len(head))
