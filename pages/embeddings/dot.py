"""The experiment of the page's part on the sentence: a dot product that is called cosine similarity."""

import streamlit as st

from pages.embeddings.figures.vectors import compared_matrix
from pages.kit.asking import ask_once
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, experiment, fragment, options_of, say
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.language import joined, plain, section, strings, t
from transformer_core.analysis.words.sentence_vectors import DotAndCosine, dot_and_cosine

FEW, MANY = 0.1, 0.5
BEFORE, AFTER = "after_layers", "handed_on"  # the last norm of a pre-norm stack


def _stages(view: View) -> dict[str, str]:
    """Return which vectors there are to compare, with their words."""
    if view.bundle.config.norm_order == "pre":
        return options_of("embeddings.dot_{}", (BEFORE, AFTER))
    return {AFTER: t("embeddings.dot_last")}


STAGE = Choice("embeddings_dot_vectors", _stages, label="embeddings.dot_vectors")


def outcome_of(found: DotAndCosine) -> str:
    """Return for how many of the tokens the two name different nearest ones."""
    share = found.others / len(found.labels)
    return "few" if share < FEW else "some" if share < MANY else "many"


@fragment
@experiment("embeddings_dot_open", "embeddings.try_dot")
def try_dot(view: View) -> None:
    """Ask for how many tokens the two name different neighbours, then show both maps beside each other."""
    if len(view.encoding) < 2:
        st.info(t("embeddings.dot_one"), icon=":material/info:")
        return
    names = _stages(view)
    stage = STAGE.show(view) if len(names) > 1 else AFTER
    answers = {each: ask_once(dot_and_cosine, prompt=view.prompt, stage=each) for each in names}
    answer = answers[stage]
    found = answer.value
    options = options_of("embeddings.dot_{}", ("few", "some", "many"))
    question = section("embeddings", "try_dot").format(count=len(found.labels), vectors=names[stage])
    about = f"{view.bundle.name} {stage} {view.encoding.text}"
    cover = ask_first(question, options, name="embeddings_dot", about=about)
    cover.judge(outcome_of(found))
    with cover.picture():
        words = strings("embeddings")
        figure = compared_matrix(found.dots, found.cosines, found.labels, words)
        version = f"dot|{stage}|{view.encoding.text}"
        show_matrix(figure, answer, key="embeddings_dot", version=version, files=True)
        measured = [
            t(
                "embeddings.dot_measured",
                vectors=names[stage],
                others=found.others,
                count=len(found.labels),
                beaten=found.beaten,
                longest=plain(found.labels[found.longest]),
                norm=f"{found.norms[found.longest]:.1f}",
                mean=f"{found.norms.mean():.1f}",
                by_dot=found.chosen_dot,
                by_cosine=found.chosen_cosine,
            )
        ]
        for each in names.keys() - {stage}:
            other = answers[each].value
            numbers = {"others": other.others, "count": len(other.labels), "norm": f"{other.norms.max():.1f}"}
            measured.append(t("embeddings.dot_other", vectors=names[each], mean=f"{other.norms.mean():.1f}", **numbers))
        say(joined(*measured))
        say(section("embeddings", "dot_after"), small=True)
