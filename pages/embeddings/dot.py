"""The experiment of the page's part on the sentence: a dot product that is called cosine similarity."""

import streamlit as st

from pages.embeddings.figures.vectors import compared_matrix
from pages.ui.asking import ask_once
from pages.ui.boxes import ask_first, fragment, lazy_box, say
from pages.ui.exports import export_matrix
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.matrix import show_matrix
from transformer_core.analysis.words.sentence_vectors import dot_and_cosine

FEW, MANY = 0.1, 0.5


@fragment
def try_dot(view: View) -> None:
    """Ask for how many tokens the two name different neighbours, then show both maps beside each other."""
    box = lazy_box(t("embeddings.try_dot"), icon=":material/science:", key="embeddings_dot_open")
    if box is None:
        return
    with box:
        if len(view.encoding) < 2:
            st.info(t("embeddings.dot_one"), icon=":material/info:")
            return
        answer = ask_once(dot_and_cosine, **view.asked, stage="after_layers")
        found = answer.value
        options = {name: t(f"embeddings.dot_{name}") for name in ("few", "some", "many")}
        question = section("embeddings", "try_dot").format(count=len(found.labels))
        cover = ask_first(question, options, name="embeddings_dot", about=f"{view.bundle.name} {view.encoding.text}")
        share = found.others / len(found.labels)
        cover.judge("few" if share < FEW else "some" if share < MANY else "many")
        with cover.picture():
            words = strings("embeddings")
            version = f"dot|{view.encoding.text}"
            figure = compared_matrix(found.dots, found.cosines, found.labels, words, strings("matrix"), version=version)
            show_matrix(figure, answer, key="embeddings_dot")
            export_matrix(figure, answer, key="embeddings_dot")
            say(
                t(
                    "embeddings.dot_measured",
                    others=found.others,
                    count=len(found.labels),
                    beaten=found.beaten,
                    longest=plain(found.labels[found.longest]),
                    norm=f"{found.norms[found.longest]:.1f}",
                    mean=f"{found.norms.mean():.1f}",
                    by_dot=found.chosen_dot,
                    by_cosine=found.chosen_cosine,
                )
            )
            say(section("embeddings", "dot_after"), small=True)
