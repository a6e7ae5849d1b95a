"""The vectors of the sentence: their values, cosines and lengths, and one word at two places."""

import streamlit as st

from pages.embeddings.dot import try_dot
from pages.embeddings.figures.vectors import cosine_matrix, norm_bars, same_word_curve, vectors_matrix
from pages.kit.asking import ask
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Choice, Values
from pages.kit.experiment import ask_first, experiment, fragment, options_of
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.words.sentence_vectors import same_word, sentence_vectors

STAGES = ("looked_up", "with_positions", "after_layers")
STAGE = Choice("embeddings_stage", STAGES, label="embeddings.stage", words="embeddings.stage_{}")
SAME, CLOSE = 0.99, 0.5


def _picture(view: View, values: Values) -> Live:
    """Return a sentence's vectors at the chosen stage, their cosines and their lengths."""
    words, stage = strings("embeddings"), values[STAGE]
    answer = ask(sentence_vectors, prompt=view.prompt, stage=stage)
    found, version = answer.value, f"{stage}|{view.encoding.text}"
    vectors = vectors_matrix(found.vectors, found.labels, words)
    cosines = cosine_matrix(found.cosine, found.labels, words)
    norms = norm_bars(found.norms, found.labels, words)
    return Live(
        (
            Picture("embeddings_vectors", vectors, answer, version=version),
            Picture("embeddings_cosine", cosines, answer, version=version),
        ),
        drawings=(Drawing("embeddings_norms", norms, answer, "embedding_norms", words["label_norms"]),),
    )


@fragment
def _show_vectors(view: View) -> None:
    """Show a sentence's vectors at one stage."""
    stage = STAGE.show(view)
    live = SENTENCE.live(view)
    vectors, cosines = live.matrices
    (norms,) = live.drawings
    found = vectors.answer.value
    left, right = st.columns([1.5, 1], gap="medium")
    with left:
        show_picture(vectors, files=True)
    with right:
        show_picture(cosines, files=True)
        if found.closest is not None:
            first, second = found.closest
            names = {"first": plain(found.labels[first]), "second": plain(found.labels[second])}
            st.markdown(t("embeddings.closest", **names, cosine=f"{found.cosine[first, second]:.3f}"))
    show_prose(section("embeddings", stage), small=True)
    show_prose(section("embeddings", "norms"))
    show_drawing(norms)
    SENTENCE.follow(view)


@fragment
@experiment("embeddings_try_same", "embeddings.try_same")
def _try_same_word(view: View) -> None:
    """Ask how similar the two vectors of a repeated word will be, then show their cosine after each layer."""
    words = strings("embeddings")
    try:
        answer = ask(same_word, prompt=view.prompt)
    except ValueError:
        st.info(words["no_word_twice"], icon=":material/info:")
        return
    found = answer.value
    question = section("embeddings", "try_same").format(word=plain(found.label), first=found.first, second=found.second)
    options = options_of("embeddings.same_{}", ("same", "close", "far"))
    cover = ask_first(question, options, name="embeddings_same", about=view.name)
    last = float(found.cosine[-1])
    outcome = "same" if last >= SAME else "close" if last >= CLOSE else "far"
    measured = t("embeddings.same_measured", looked_up=f"{found.cosine[0]:.3f}", last=f"{last:.3f}")
    cover.judge(outcome, measured)
    with cover.picture():
        chart = same_word_curve(found.cosine, words)
        show_chart(chart, answer, key="embeddings_same", stem="same_word", label=words["label_same"])


def _show(view: View) -> None:
    """Show the sentence's vectors, and one word at two places."""
    _show_vectors(view)
    _try_same_word(view)
    try_dot(view)


SENTENCE = Part("embeddings", "sentence", _show, _picture, (STAGE,))
