"""The page's part that replaces the activation of the trained model at inference."""

from typing import Any

import streamlit as st

from pages.feed_forward.figures.neurons import swap_chart
from pages.feed_forward.neurons import MOVES, size_of_move
from pages.kit.asking import ask
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, covered, fragment, options_of, say
from pages.kit.header import View
from pages.kit.number_format import markdown_table
from pages.kit.verdict import classifies, concludes, outcome_word
from pages.kit.waiting import awaited
from pages.language import section, strings, t
from pages.room import Part
from transformer_core.analysis.feed_forward.neurons import sentences_for
from transformer_core.analysis.feed_forward.other_activation import (
    Swapped,
    SwappedOnCorpus,
    swapped_activation,
    swapped_on_corpus,
)


@fragment
def _show(view: View) -> None:
    """Ask what another activation does to the verdict, then show it, on the sentence and on the corpus."""
    if not concludes(view):
        return
    used = view.bundle.config.activation
    other = "gelu" if used == "relu" else "relu"
    options = options_of("feed_forward.moves_{}", MOVES)
    question = section("feed_forward", "try_swap").format(
        used=t(f"feed_forward.name_{used}"), other=t(f"feed_forward.name_{other}")
    )
    cover = ask_first(question, options, name="feed_forward_swap", about=view.name)
    swapped = ask(swapped_activation, prompt=view.prompt)
    found = swapped.value
    place = found.names.index(other)
    flipped = found.probabilities[place].argmax() != found.winner
    cover.judge(size_of_move(found.moves[place], flipped=flipped), _measured(view, found, other))
    with cover.picture():
        chart, corpus = st.columns([3, 2], gap="large")
        with chart:
            show_chart(
                swap_chart(found.names, found.moves, found.by_layer, strings("feed_forward"), used=used),
                swapped,
                key="feed_forward_swap",
                label=t("feed_forward.swap_label"),
            )
        with corpus:
            if not covered() and classifies(view):
                reading = t("feed_forward.reading", count=sentences_for(view.bundle.config))
                asked: dict[str, Any] = {"bundle": view.bundle, "sentences": sentences_for(view.bundle.config)}
                answer = awaited(swapped_on_corpus, reading, key="feed_forward_corpus", **asked)
                if answer is not None:
                    say(_table(answer.value))
        say(section("feed_forward", "swap_after"))


def _measured(view: View, found: Swapped, other: str) -> str:
    return t(
        "feed_forward.swap_measured",
        label=outcome_word(view, found.winner),
        before=f"{found.probabilities[found.names.index(found.used)][found.winner]:.2%}",
        after=f"{found.probabilities[found.names.index(other)][found.winner]:.2%}",
        other=t(f"feed_forward.name_{other}"),
    )


def _table(found: SwappedOnCorpus) -> str:
    language = t(f"feed_forward.corpus_{found.language}")
    title = t("feed_forward.swap_corpus", count=found.sentences, language=language)
    head = [t("feed_forward.activation_function"), t("feed_forward.flips"), t("feed_forward.mean_move")]
    rows = [
        [t(f"feed_forward.name_{name}"), f"{flips}", f"{move:.3f}"]
        for name, flips, move in zip(found.names, found.flips, found.mean_move, strict=True)
    ]
    if found.accuracy is not None:
        head.append(t("feed_forward.accuracy"))
        for row, accuracy in zip(rows, found.accuracy, strict=True):
            row.append(f"{accuracy:.1%}")
    return f"**{title}**\n\n{markdown_table(head, rows, right=len(head) - 1)}"


SWAP = Part("feed_forward", "swap", _show)
