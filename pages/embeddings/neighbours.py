"""The nearest words of any word, and analogies of four words. Both ask for words that are one token each."""

import streamlit as st

from pages.embeddings.figures.vectors import word_bars
from pages.ui.asking import ask_once
from pages.ui.charts import show_chart
from pages.ui.experiment import ask_first, fragment
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.last_text import in_words, read_and_tell
from pages.ui.url import choose, choose_from_list, suggested_text_input, switch
from transformer_core.analysis.words.nearest_words import analogy, nearest_words
from transformer_core.analysis.words.vocabulary import Found, find
from transformer_core.text import Tokenizer

MEASURES = ("cosine", "centred", "euclidean")
ANALOGIES = {
    "worst": ("best", "good", "bad", "worst"),
    "she": ("he", "man", "woman", "she"),
    "were": ("was", "is", "are", "were"),
    "films": ("movies", "movie", "film", "films"),
    "worse": ("better", "good", "bad", "worse"),
    "queen": ("king", "man", "woman", "queen"),
    "actresses": ("actors", "actor", "actress", "actresses"),
}
OF_CHARACTERS = {
    "she_zh": ("妈", "爸", "他", "她"),
    "small_zh": ("短", "长", "大", "小"),
    "few_zh": ("小", "大", "多", "少"),
    "slow_zh": ("差", "好", "快", "慢"),
}
FIRST_WORD = {"zh": "差"}  # by the language that a model reads; of all others "awful"
OWN = "own"
RANKS = {"first": 1, "ten": 10, "hundred": 100, "beyond": float("inf")}
MOST_CHARACTERS = 60


def _one_token(tokenizer: Tokenizer, word: str) -> Found:
    """Return the one token of a word.

    Raises:
        ValueError: the word is empty, too long, unknown or several tokens; the message is meant for the page.
    """
    word = word.strip()
    if not word:
        raise ValueError(t("embeddings.word_empty"))
    shown = word[:MOST_CHARACTERS]
    if len(word) > MOST_CHARACTERS:
        raise ValueError(t("embeddings.word_long", word=shown, most=MOST_CHARACTERS))
    with in_words():
        found = find(tokenizer, word)
    if not found.known:
        raise ValueError(t("embeddings.word_unknown", word=shown))
    if len(found.ids) > 1:
        pieces = " + ".join(found.labels)
        raise ValueError(t("embeddings.word_pieces", word=shown, count=len(found.ids), pieces=pieces))
    return found


def ask_for_word(tokenizer: Tokenizer, label: str, *, name: str, default: str) -> Found | None:
    """Show a text input for a word and return its one token; where it has none, that of the last word that had one."""
    return read_and_tell(
        name, suggested_text_input(label, default, name=name), default, lambda word: _one_token(tokenizer, word)
    )


@fragment
def show_neighbours(view: View) -> None:
    """Show the nearest words of a typed word."""
    words = strings("embeddings")
    word_place, switch_place = st.columns(2, vertical_alignment="center")
    with word_place:
        first = FIRST_WORD.get(view.bundle.reads, "awful")
        found = ask_for_word(view.bundle.tokenizer, words["word"], name="embeddings_word", default=first)
    with switch_place:
        fragments = switch(words["fragments"], name="embeddings_fragments", default=False)
    options = {name: words[f"measure_{name}"] for name in MEASURES}
    measure = choose(words["measure"], options, name="embeddings_measure", default=MEASURES[0])
    if found is None:
        return
    asked = {"token_id": found.ids[0], "k": 12, "measure": measure, "fragments": fragments}
    try:
        answer = ask_once(nearest_words, bundle=view.bundle, **asked)
    except ValueError as error:
        st.info(t("embeddings.too_small", error=plain(str(error))), icon=":material/info:")
        return
    near = answer.value
    lengths = measure == "euclidean"
    chart = word_bars(
        near.labels,
        near.values,
        [False] * len(near.values),
        words,
        title=words["axis_distance"] if lengths else words["axis_cosine"],
        names=("", ""),
        average=near.average,
        low=0.0 if lengths else min(0.0, float(near.values.min())),
        high=1.15 * max(float(near.values.max()), near.average) if lengths else 1.05,
    )
    show_chart(chart, answer, key="embeddings_near", stem="nearest_words", label=words["label_near"])
    tell(section("embeddings", measure))
    facts = {"word": plain(found.labels[0]), "norm": f"{near.norm:.3f}", "count": f"{near.candidates:,}"}
    st.caption(t("embeddings.near_facts", **facts, average=f"{near.average:.3f}"))


def _equation(a: str, b: str, c: str, expected: str) -> str:
    return f"{a} − {b} + {c} ≈ {expected}"


def _known(view: View, word: str) -> Found | None:
    found = find(view.bundle.tokenizer, word)
    return found if found.known and len(found.ids) == 1 else None


@fragment
def show_analogies(view: View) -> None:
    """Ask at which rank the expected word will be, then show the words nearest to a - b + c."""
    words = strings("embeddings")
    there = OF_CHARACTERS if view.bundle.reads == "zh" else ANALOGIES
    options = {name: _equation(*given) for name, given in there.items()} | {OWN: words["own"]}
    chosen = choose_from_list(words["analogy"], options, name="embeddings_analogy") or OWN
    given = there.get(chosen) or next(iter(there.values()))
    ids = []
    if chosen == OWN:
        names = ("a", "b", "c", "d")
        for name, default, place in zip(names, given, st.columns(4), strict=True):
            with place:
                label = words[f"analogy_{name}"]
                ids.append(ask_for_word(view.bundle.tokenizer, label, name=f"embeddings_{name}", default=default))
    else:
        ids = [_known(view, word) for word in given]
    known = [found for found in ids if found is not None]
    if len(known) < len(given):
        if chosen != OWN:
            st.info(words["analogy_absent"], icon=":material/info:")
        return
    a, b, c, expected = (found.ids[0] for found in known)
    shown = _equation(*(plain(found.labels[0]) for found in known))
    ranks = {name: words[f"rank_{name}"] for name in RANKS}
    question = section("embeddings", "try_analogy").format(analogy=shown)
    cover = ask_first(question, ranks, name="embeddings_analogy", about=f"{view.bundle.name} {a} {b} {c} {expected}")
    answer = ask_once(analogy, bundle=view.bundle, a=a, b=b, c=c, expected=expected)
    result = answer.value
    outcome = next(name for name, most in RANKS.items() if (result.rank or 0) <= most)
    facts = {"rank": f"{result.rank:,}", "with_given": f"{result.rank_with_given:,}", "count": f"{result.candidates:,}"}
    cover.judge(outcome, t("embeddings.analogy_measured", **facts))
    with cover.picture():
        chart = word_bars(
            result.labels,
            result.cosine,
            result.given.tolist(),
            words,
            title=words["axis_cosine"],
            names=(words["not_given"], words["given"]),
            low=min(0.0, float(result.cosine.min())),
            high=1.05,
        )
        show_chart(chart, answer, key="embeddings_analogy_chart", stem="analogy", label=words["label_analogy"])
