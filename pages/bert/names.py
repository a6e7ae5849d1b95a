"""The page's part on names: what a token classifier makes of each token, and of words and names."""

import streamlit as st

from pages.bert.figures.tokens import hues_of_kinds, labels_figure, marked_text
from pages.kit.asking import ask
from pages.kit.experiment import ask_first, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.kit.models import offer_model
from pages.kit.navigation import ICONS, page_path
from pages.kit.number_format import markdown_table
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.bert.token_labels import TokenLabels, kind_of_label, token_labels

KIND = "tagger"
SEVERAL = 2


def needs_other(view: View, kind: str) -> None:
    """Say in one line which checkpoint this part reads and where one is opened, with a button to one that is there."""
    with st.container(key=f"needs_{kind}"):
        offer_model(t(f"bert.needs_{kind}", name=plain(view.bundle.name)), (kind,))
        st.page_link(page_path("my_model"), label=t("bert.open_one"), icon=ICONS["my_model"])


def _show(view: View) -> None:
    """Show names marked in the text, the labels' probabilities token by token, and the words that they make."""
    if view.bundle.kind != KIND:
        needs_other(view, KIND)
        return
    answer = ask(token_labels, prompt=view.prompt)
    found = answer.value
    if not found.words:
        st.info(t("bert.no_word"), icon=":material/info:")
        return
    hues = hues_of_kinds([kind_of_label(label) for label in found.labels])
    spans = [(name.start, name.end, name.kind, f"{name.kind} {name.probability:.0%}") for name in found.names]
    st.html(marked_text(view.encoding.text, spans, hues))
    if not found.names:
        say(t("bert.no_names"), small=True)
    version = f"labels {view.bundle.name} {view.encoding.text}"
    figure = labels_figure(found.tokens, found.labels, found.probabilities, strings("bert"))
    show_matrix(figure, answer, key="bert_labels", version=version, files=True)
    with st.expander(t("bert.labelled_words", count=len(found.words)), icon=":material/table_rows:"):
        st.markdown(_table(found))
    _pieces(view, found)


def _table(found: TokenLabels) -> str:
    head = [t(f"bert.word_{name}") for name in ("itself", "pieces", "label", "sure")]
    rows = [
        (
            plain(word).replace("|", "\\|"),
            plain(" ".join(found.tokens[place] for place in own)).replace("|", "\\|"),
            plain(found.labels[label]),
            f"{sure:.1%}",
        )
        for word, own, label, sure in zip(found.words, found.places, found.chosen, found.sure, strict=True)
    ]
    return markdown_table(head, rows, right=1)


def _pieces(view: View, found: TokenLabels) -> None:
    """Ask whether all tokens of a word agree, where the text has a word of several."""
    several = sum(len(own) >= SEVERAL for own in found.places)
    if not several:
        show_prose(section("bert", "names_after"))
        return
    options, question = options_of("bert.agree_{}", ("all", "some", "none")), section("bert", "try_pieces")
    cover = ask_first(question.format(count=several), options, name="bert_pieces", about=view.name)
    apart = found.disagreeing
    outcome = "all" if not apart else "none" if apart == several else "some"
    cover.judge(outcome, t("bert.pieces_measured", apart=apart, count=several))
    with cover.picture():
        say(section("bert", "names_after"))


NAMES = Part("bert", "names", _show, sites=("token_logits",), group="further")
