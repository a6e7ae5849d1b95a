"""One-hot vectors beside learned ones: what each says about the similarity of words, and the memory of each."""

from dataclasses import replace

import streamlit as st

from pages.kit.asking import Answer, ask
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, experiment, fragment
from pages.kit.exports import export_matrix
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.kit.number_format import in_bytes
from pages.language import plain, section, strings, t
from pages.room import Part
from pages.tokens.figures import MEASURES, one_hot_figure
from transformer_core.analysis.words.one_hot import WordRelations, likeness, word_relations

TRIPLES = {
    "dull": ("dull", "boring", "exciting"),
    "good": ("good", "great", "bad"),
    "three": ("three", "four", "kitchen"),
    "hao": ("好", "棒", "坏"),
}
MEASURE = Choice("tokens_measure", MEASURES, label="tokens.measure", words="tokens.measure_{}", default="cosine")
TRIPLE = Choice(
    "tokens_triple", {name: " · ".join(words) for name, words in TRIPLES.items()}, label="tokens.triple", form="list"
)


@fragment
def _show(view: View) -> None:
    """Show both kinds of vectors, the memory that they need, and the prediction."""
    answer = ask(word_relations, prompt=view.prompt)
    measure = MEASURE.show()
    found = vars(answer.value)
    suffix = "" if measure == "vectors" else f"_{measure}"
    figure = one_hot_figure(
        found[f"one_hot{suffix}"],
        found[f"learned{suffix}"],
        answer.value.labels,
        answer.value.ids,
        strings("tokens_one_hot"),
        measure=measure,
        note=section("tokens", measure),
    )
    figure = replace(figure, strings=strings("tokens_matrix"))
    show_matrix(figure, answer, key="tokens_one_hot", version=f"{measure}|{view.encoding.text}")
    st.markdown(_describe(answer.value, measure))
    export_matrix(figure, answer, key="tokens_one_hot")
    _memory(answer, len(view.encoding))
    _try_likeness(view)


def _describe(found: WordRelations, measure: str) -> str:
    sizes = {"vocabulary": f"{found.vocab_size:,}", "zeros": f"{found.vocab_size - 1:,}", "width": f"{found.d_model:,}"}
    if measure == "vectors":
        return t("tokens.told_vectors", **sizes)
    bounds = found.bounds[int(measure == "distance")]
    low, high, learned_low, learned_high = (f"{bound:.4f}" for bound in bounds)
    if len(found.ids) < 2:
        return t("tokens.told_alone")
    numbers = {"low": low, "high": high, "learned_low": learned_low, "learned_high": learned_high}
    return t(f"tokens.told_{measure}", count=len(found.ids), **numbers)


def _memory(answer: Answer[WordRelations], length: int) -> None:
    found = answer.value
    st.subheader(t("tokens.memory_heading"), anchor=False)
    show_prose(section("tokens", "memory"))
    sizes = {"size": f"{found.vocab_size:,}", "width": f"{found.d_model:,}"}
    one_hot, learned, ids = st.columns(3)
    one_hot.metric(t("tokens.memory_one_hot", **sizes), in_bytes(found.one_hot_bytes))
    learned.metric(t("tokens.memory_learned", **sizes), in_bytes(found.learned_bytes))
    ratio = found.one_hot_bytes / found.learned_bytes
    ids.metric(t("tokens.memory_ratio"), f"{ratio:,.1f} ×")
    n_one_hot, n_learned = 4 * length * found.vocab_size, 4 * length * found.d_model
    st.caption(t("tokens.memory_sentence", length=length, one_hot=in_bytes(n_one_hot), learned=in_bytes(n_learned)))


@experiment("tokens_try_one_hot", "tokens.try_one_hot")
def _try_likeness(view: View) -> None:
    show_prose(section("tokens", "try_one_hot"))
    word, near, far = TRIPLES[TRIPLE.show()]
    options = {"near": near, "far": far, "equal": t("tokens.guess_equal")}
    cover = ask_first(
        t("tokens.question_one_hot", word=word), options, name="tokens_alike", about=f"{view.bundle.name} {word}"
    )
    found = ask(likeness, bundle=view.bundle, word=word, near=near, far=far).value
    if found.near is None or found.far is None:
        st.info(t("tokens.no_words", model=plain(view.bundle.name)), icon=":material/info:")
        return
    outcome = "near" if found.near > found.far else "far" if found.far > found.near else "equal"
    numbers = {name: f"{getattr(found, name):.3f}" for name in ("near", "far", "one_hot_near", "one_hot_far")}
    measured = t("tokens.measured_one_hot", word=word, near_word=near, far_word=far, **numbers)
    cover.judge(outcome, measured)


ONE_HOT = Part("tokens", "one_hot", _show)
