"""Byte-pair encoding learned on a text, shown merge by merge."""

import streamlit as st

from pages.tokens.chips import offer_chips, show_chips
from pages.tokens.figures import Line, merging_chart, rivals_chart
from pages.ui.asking import Answer, ask
from pages.ui.charts import show_chart
from pages.ui.experiment import ask_first, fragment, lazy_box, say
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import language_of, plain, section, t
from pages.ui.url import choose, slide, text_area
from transformer_core.analysis.words.bpe_merges import MOST_CHARACTERS, OWN, MergeStep, learnable, merge_step
from transformer_core.analysis.words.tokenizer_comparison import CORPORA
from transformer_core.text.merges import ALPHABETS


@fragment
def show_merges(view: View) -> None:
    """Show the sentence after a chosen merge, and which pairs were joined."""
    corpus, pasted, alphabet = _choose_text(language_of(view.encoding.text) or "en")
    if corpus == OWN and len(pasted) > MOST_CHARACTERS:
        st.info(t("tokens.pasted_long", count=f"{len(pasted):,}", most=f"{MOST_CHARACTERS:,}"), icon=":material/info:")
        return
    if corpus == OWN and not pasted.strip():
        st.info(t("tokens.pasted_empty"), icon=":material/info:")
        return
    try:
        most = learnable(corpus=corpus, pasted=pasted, alphabet=alphabet)
    except ValueError as error:
        st.info(t("tokens.pasted_unreadable", error=plain(str(error))), icon=":material/info:")
        return
    if not most:
        st.info(t("tokens.pasted_poor"), icon=":material/info:")
        return
    merges, step = _choose_step(most)
    answer = ask(
        merge_step, corpus=corpus, pasted=pasted, alphabet=alphabet, merges=merges, step=step, text=view.encoding.text
    )
    _show_step(view, answer)
    _try_other_language(view, answer, corpus, pasted, alphabet)


def _choose_text(language: str) -> tuple[str, str, str]:
    left, right = st.columns(2)
    with left:
        options = {name: t(f"tokens.corpus_{name}") for name in (*CORPORA, OWN)}
        corpus = choose(t("tokens.learn_from"), options, name="tokens_text", default=language)
    with right:
        alphabets = {name: t(f"tokens.alphabet_{name}") for name in ALPHABETS}
        alphabet = choose(t("tokens.alphabet"), alphabets, name="tokens_alphabet", default=ALPHABETS[0])
    pasted = ""
    if corpus == OWN:
        label = t("tokens.pasted", most=f"{MOST_CHARACTERS:,}")
        pasted = text_area(label, name="tokens_pasted", default="", height=140)
    return corpus, pasted, alphabet


def _choose_step(most: int) -> tuple[int, int]:
    left, right = st.columns([1, 2], gap="large")
    merges = 1
    with left:
        if most > 1:
            merges = int(slide(t("tokens.merges"), 1, most, name="tokens_merges", default=min(400, most)))
    with right:
        step = slide(t("tokens.step"), 0, merges, name="tokens_step", default=min(40, merges))
    return merges, int(step)


def _show_step(view: View, answer: Answer[MergeStep]) -> None:
    found = answer.value
    text = view.encoding.text
    chips = show_chips(text, (_line(found, len(text)),), answer, name="tokens_merged")
    st.markdown(_describe(found))
    curve, bars = st.columns([3, 2], gap="large")
    with curve:
        tell(section("tokens", "curve"))
        words = {name: t(f"tokens.curve_{name}") for name in ("merges", "left", "corpus", "sentence")}
        chart = merging_chart(found.n_tokens, found.sentence_tokens, found.step, words)
        show_chart(chart, answer, key="tokens_curve", stem="tokens_merges", label=t("tokens.curve_label"))
    with bars:
        tell(section("tokens", "rivals"))
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
    return Line(
        title=t("tokens.after", step=found.step),
        count=f"{count:,}",
        unit=t("tokens.unit"),
        facts=(t("tokens.fact_ratio", ratio=f"{n_characters / max(count, 1):.2f}"),),
        verdict="",
        faithful=True,
        labels=found.labels,
        ids=found.ids,
        starts=found.starts,
        ends=found.ends,
        special=(False,) * count,
        unknown=found.unknown,
        shared=found.shared,
        spelled=found.spelled,
        fresh=found.fresh,
    )


def _try_other_language(view: View, answer: Answer[MergeStep], corpus: str, pasted: str, alphabet: str) -> None:
    box = lazy_box(t("tokens.try_merges"), icon=":material/science:", key="tokens_try_merges")
    if box is None:
        return
    with box:
        other = "en" if corpus == "zh" else "zh"
        merges = len(answer.value.counts)
        names = {"other": t(f"tokens.corpus_{other}"), "here": t(f"tokens.corpus_{corpus}")}
        options = {name: t(f"tokens.guess_{name}") for name in ("more", "as_many", "fewer")}
        elsewhere = min(merges, learnable(corpus=other, pasted="", alphabet=alphabet))
        question = t("tokens.question_merges", merges=f"{merges:,}", **names)
        cover = ask_first(
            question,
            options,
            name="tokens_merges",
            about=f"{corpus} {alphabet} {merges} {hash(pasted)} {view.encoding.text}",
        )
        text = view.encoding.text
        found = ask(merge_step, corpus=other, pasted="", alphabet=alphabet, merges=elsewhere, step=0, text=text)
        here, there = (int(one.value.sentence_tokens[-1]) for one in (answer, found))
        outcome = "more" if there > here else "fewer" if there < here else "as_many"
        words = t(
            "tokens.measured_merges",
            n_here=here,
            n_other=there,
            merges=f"{merges:,}",
            n_merges=f"{elsewhere:,}",
            **names,
        )
        cover.judge(outcome, words)
        with cover.picture():
            say(section("tokens", "try_merges"))
