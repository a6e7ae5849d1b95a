"""Byte-pair encoding learned on a text, shown merge by merge."""

import streamlit as st

from pages.kit.asking import Answer, ask
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider, Text, show_in_columns
from pages.kit.experiment import ask_first, experiment, fragment, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.language import language_of, plain, section, t
from pages.room import Part
from pages.tokens.chips import offer_chips, show_chips
from pages.tokens.figures import Line, merging_chart, rivals_chart
from transformer_core.analysis.words.bpe_merges import MOST_CHARACTERS, OWN, MergeStep, learnable, merge_step
from transformer_core.analysis.words.tokenizer_comparison import CORPORA
from transformer_core.text.merges import ALPHABETS


def _pasted(view: View) -> str:
    return PASTED.read() if CORPUS.read(view) == OWN else ""


def _most(view: View) -> int:
    return learnable(corpus=CORPUS.read(view), pasted=_pasted(view), alphabet=ALPHABET.read())


CORPUS = Choice(
    "tokens_text",
    (*CORPORA, OWN),
    label="tokens.learn_from",
    words="tokens.corpus_{}",
    default=lambda view: language_of(view.encoding.text) or "en",
)
ALPHABET = Choice("tokens_alphabet", ALPHABETS, label="tokens.alphabet", words="tokens.alphabet_{}")
PASTED = Text("tokens_pasted", "", label=lambda _: t("tokens.pasted", most=f"{MOST_CHARACTERS:,}"), height=140)
COUNT = Slider("tokens_merges", 1, _most, lambda view: min(400, _most(view)), label="tokens.merges")
STEP = Slider("tokens_step", 0, COUNT.read, lambda view: min(40, COUNT.read(view)), label="tokens.step")


def _trouble(view: View) -> str:
    """Return why nothing can be learned from the pasted text, "" where something can."""
    pasted = _pasted(view)
    if len(pasted) > MOST_CHARACTERS:
        return t("tokens.pasted_long", count=f"{len(pasted):,}", most=f"{MOST_CHARACTERS:,}")
    if CORPUS.read(view) == OWN and not pasted.strip():
        return t("tokens.pasted_empty")
    try:
        return "" if _most(view) else t("tokens.pasted_poor")
    except ValueError as error:
        return t("tokens.pasted_unreadable", error=plain(str(error)))


@fragment
def _show(view: View) -> None:
    """Show the sentence after a chosen merge, and which pairs were joined."""
    corpus, alphabet = show_in_columns(view, CORPUS, ALPHABET)
    if corpus == OWN:
        PASTED.show()
    trouble, pasted = _trouble(view), _pasted(view)
    if trouble:
        st.info(trouble, icon=":material/info:")
        return
    merges, step = show_in_columns(view, COUNT, STEP, widths=(1, 2), gap="large")
    answer = ask(
        merge_step, corpus=corpus, pasted=pasted, alphabet=alphabet, merges=merges, step=step, text=view.encoding.text
    )
    _show_step(view, answer)
    _try_other_language(view, answer, corpus, pasted, alphabet)


def _show_step(view: View, answer: Answer[MergeStep]) -> None:
    found = answer.value
    text = view.encoding.text
    chips = show_chips(text, (_line(found, len(text)),), answer, name="tokens_merged")
    st.markdown(_describe(found))
    curve, bars = st.columns([3, 2], gap="large")
    with curve:
        show_prose(section("tokens", "curve"))
        words = {name: t(f"tokens.curve_{name}") for name in ("merges", "left", "corpus", "sentence")}
        chart = merging_chart(found.n_tokens, found.sentence_tokens, found.step, words)
        show_chart(chart, answer, key="tokens_curve", stem="tokens_merges", label=t("tokens.curve_label"))
    with bars:
        show_prose(section("tokens", "rivals"))
        words = {name: t(f"tokens.rivals_{name}") for name in ("count", "waiting")}
        words["joined"] = t("tokens.rivals_joined" if found.step else "tokens.rivals_next")
        chart = rivals_chart(found.rivals, found.rival_counts, words)
        show_chart(chart, answer, key="tokens_rivals", stem="tokens_pairs", label=t("tokens.rivals_label"))
    offer_chips(chips, answer)


def _describe(found: MergeStep) -> str:
    size = f"{found.n_alphabet + found.step:,}"
    facts = {"size": size, "alphabet": f"{found.n_alphabet:,}", "words": f"{found.n_words:,}"}
    if not found.step:
        return t("tokens.at_start", **facts)
    place = found.step - 1
    left, right = plain(found.lefts[place]), plain(found.rights[place])
    facts["gaps"] = str(found.sentence_tokens[place] - found.sentence_tokens[found.step])
    return t("tokens.at_step", step=found.step, left=left, right=right, count=f"{found.counts[place]:,}", **facts)


def _line(found: MergeStep, n_characters: int) -> Line:
    count = len(found.labels)
    return Line.of(
        found,
        title=t("tokens.after", step=found.step),
        count=f"{count:,}",
        unit=t("tokens.unit"),
        facts=(t("tokens.fact_ratio", ratio=f"{n_characters / max(count, 1):.2f}"),),
        verdict="",
        faithful=True,
        special=(False,) * count,
        fresh=found.fresh,
    )


@experiment("tokens_try_merges", "tokens.try_merges")
def _try_other_language(view: View, answer: Answer[MergeStep], corpus: str, pasted: str, alphabet: str) -> None:
    other = "en" if corpus == "zh" else "zh"
    merges = len(answer.value.counts)
    names = {"other": t(f"tokens.corpus_{other}"), "here": t(f"tokens.corpus_{corpus}")}
    options = options_of("tokens.guess_{}", ("more", "as_many", "fewer"))
    elsewhere = min(merges, learnable(corpus=other, pasted="", alphabet=alphabet))
    question = t("tokens.question_merges", merges=f"{merges:,}", **names)
    text = view.encoding.text
    about = f"{corpus} {alphabet} {merges} {hash(pasted)} {text}"
    cover = ask_first(question, options, name="tokens_merges", about=about)
    found = ask(merge_step, corpus=other, pasted="", alphabet=alphabet, merges=elsewhere, step=0, text=text)
    here, there = (int(one.value.sentence_tokens[-1]) for one in (answer, found))
    outcome = "more" if there > here else "fewer" if there < here else "as_many"
    counts = {"n_here": here, "n_other": there, "merges": f"{merges:,}", "n_merges": f"{elsewhere:,}"}
    cover.judge(outcome, t("tokens.measured_merges", **counts, **names))
    with cover.picture():
        say(section("tokens", "try_merges"))


MERGES = Part("tokens", "merges", _show)
