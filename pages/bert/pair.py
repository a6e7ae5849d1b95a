"""The page's part on pairs: whether two sentences go together, in either order, and which words decide it."""

import streamlit as st

from pages.bert.figures.guesses import numbered
from pages.bert.figures.pair import moves_chart, verdicts_chart
from pages.kit.asking import Answer, ask
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Text
from pages.kit.experiment import ask_first, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import MOST_CHARACTERS, MOST_TOKENS, View
from pages.kit.refusals import in_words, require_length
from pages.kit.url import set_choice
from pages.kit.verdict import show_verdict, verdict_of
from pages.kit.waiting import BRIEF, awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.bert.masked_words import own_places
from transformer_core.analysis.bert.sentence_pairs import WordsOfPair, encode_pair, pair_verdict, words_of_pair
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

MUCH = 5.0


def most_tokens(view: View) -> int:
    """Return how many tokens of a pair are read at most."""
    return min(MOST_TOKENS, view.bundle.config.max_len)


def _paired(view: View, second: str) -> Encoding:
    """Return both sentences encoded as one pair.

    Raises:
        ValueError: if the second one is empty, too long, has no word or cannot be read; its message is for the page.
    """
    if not second.strip():
        raise ValueError(t("bert.second_empty"))
    require_length(second, MOST_CHARACTERS)
    with in_words():
        pair = encode_pair(Prompt(view.bundle, view.encoding.text, most_tokens(view), second))
    if not any(pair.segment_ids[place] for place in own_places(pair)):
        raise ValueError(t("bert.second_no_word"))
    return pair


SECOND = Text("bert_second", "A cowboy on a brown horse is outside.", label="bert.second", parse=_paired)


def _tokens(view: View) -> dict[str, str]:
    """Return the tokens of the second sentence, the longest first."""
    pair = SECOND.read(view)
    own = sorted((place for place in own_places(pair) if pair.segment_ids[place]), key=lambda p: -len(pair.labels[p]))
    return {str(place): f"{place} · {pair.labels[place]}" for place in own}


TOKEN = Choice("bert_pair_token", _tokens, label="bert.pair_token", kind=int, form="list")


def show_second(view: View) -> Encoding | None:
    """Show the box for the second sentence and return the pair; None, with a message, where there is none to judge."""
    if not view.bundle.config.pair_head:
        st.info(t("bert.no_pair_head", name=plain(view.bundle.name)), icon=":material/info:")
        return None
    SECOND.show_box(view)
    pair = SECOND.note(view)
    if pair is not None and pair.truncated:
        st.caption(t("bert.pair_cut", count=pair.truncated, most=most_tokens(view)))
    return pair


def prompt_of_pair(view: View, pair: Encoding) -> Prompt:
    """Return the model and both sentences."""
    return Prompt(view.bundle, view.encoding.text, most_tokens(view), pair.pair)


def _show(view: View) -> View:
    """Show the verdict on two sentences, both orders, and what hiding a word does; return the view under the glass."""
    first, second = st.columns(2, gap="large")
    with first:
        st.caption(t("bert.sentence_a"))
        st.markdown(f"**{plain(view.encoding.text)}**")
    with second:
        pair = show_second(view)
    if pair is None:
        return view
    with first:
        _offer_swap(view, pair)
    answer = ask(pair_verdict, prompt=prompt_of_pair(view, pair))
    verdict, orders = st.columns([1, 1], gap="large")
    with verdict:
        _verdict(float(answer.value.follows[0]))
    with orders:
        names = [t(f"bert.order_{order}") for order in answer.value.orders]
        show_chart(
            verdicts_chart(names, answer.value.follows, strings("bert")),
            answer,
            key="bert_orders",
            stem="bert_pair_orders",
            label=t("bert.orders_label"),
        )
    _words(view, pair)
    return View(view.bundle, pair)


def _offer_swap(view: View, pair: Encoding) -> None:
    def swap() -> None:
        set_choice("text", pair.pair or "")
        set_choice(SECOND.name, view.encoding.text)

    if st.button(t("bert.swap"), icon=":material/swap_horiz:", on_click=swap, key="bert_swap"):
        st.rerun()


def _verdict(follows: float) -> None:
    st.subheader(t("bert.yes" if follows > 0.5 else "bert.no"), anchor=False)
    show_verdict(verdict_of((t("bert.goes"), t("bert.goes_not")), (follows, 1 - follows)))
    show_prose(section("bert", "pair_note"))


def verdict_outcome(before: float, after: float) -> str:
    """Return whether a verdict flips, moves much, or little."""
    if (before > 0.5) != (after > 0.5):
        return "flips"
    return "much" if 100 * abs(after - before) >= MUCH else "little"


def _words(view: View, pair: Encoding) -> None:
    st.subheader(t("bert.words_heading"), anchor=False)
    if view.bundle.tokenizer.mask_id is None:
        st.info(t("bert.no_mask_token", name=plain(view.bundle.name)), icon=":material/info:")
        return
    where, asking = st.columns([1, 3], gap="large")
    with where:
        place = TOKEN.show(view)
    options = options_of("try.{}", ("little", "much", "flips"))
    with asking:
        question = t("bert.try_pair_word", word=plain(pair.labels[place]))
        about = f"{view.bundle.name} {pair.text} {pair.pair} {place}"
        cover = ask_first(question, options, name="bert_pair_word", about=about)
    brief, prompt = len(pair.labels) <= BRIEF, prompt_of_pair(view, pair)
    answer = awaited(words_of_pair, t("bert.hiding_each"), key="bert_words_of_pair", brief=brief, prompt=prompt)
    if answer is None:
        return
    found = answer.value
    token = found.places.tolist().index(place)
    outcome = verdict_outcome(found.usual, float(found.follows[token]))
    measured = t(
        "bert.pair_word_measured",
        word=plain(pair.labels[place]),
        before=f"{found.usual:.1%}",
        after=f"{found.follows[token]:.1%}",
        moved=f"{found.moves[token]:+.2f}",
    )
    cover.judge(outcome, measured)
    with cover.picture():
        _moves(answer, token)


def _moves(answer: Answer[WordsOfPair], token: int) -> None:
    found = answer.value
    names = numbered(found.labels, found.places.tolist())
    strongest = int(abs(found.moves).argmax())
    show_chart(
        moves_chart(names, found.segments, found.moves, found.flipped, strings("bert"), chosen=token),
        answer,
        key="bert_moves",
        stem="bert_pair_words",
        label=t("bert.moves_label"),
    )
    say(
        t(
            "bert.moves_note",
            word=plain(found.labels[strongest]),
            moved=f"{found.moves[strongest]:+.2f}",
            flips=int(found.flipped.sum()),
            count=len(found.places),
        ),
        small=True,
    )


PAIR = Part("bert", "pair", _show, sites=("pooled", "*.class_logits"), group="pair")
