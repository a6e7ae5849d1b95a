"""The nearest words of any word, and analogies of four words. Both ask for words that are one token each."""

import streamlit as st

from pages.embeddings.figures.vectors import word_bars
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Switch, Text, show_in_columns
from pages.kit.experiment import ask_first, fragment, options_of
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.refusals import in_words
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.words.nearest_words import analogy, nearest_words
from transformer_core.analysis.words.vocabulary import Found, find
from transformer_core.text import Tokenizer

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
EQUATION = "{} − {} + {} ≈ {}"
OWN = "own"
RANKS = {"first": 1, "ten": 10, "hundred": 100, "beyond": float("inf")}
MOST_CHARACTERS = 60


def one_token(tokenizer: Tokenizer, word: str) -> Found:
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


def _token(view: View, word: str) -> Found | None:
    return one_token(view.bundle.tokenizer, word)


def _analogies(view: View) -> dict[str, tuple[str, str, str, str]]:
    return OF_CHARACTERS if view.bundle.reads == "zh" else ANALOGIES


def _equations(view: View) -> dict[str, str]:
    return {name: EQUATION.format(*given) for name, given in _analogies(view).items()} | {OWN: t("embeddings.own")}


WORD = Text(
    "embeddings_word", lambda view: FIRST_WORD.get(view.bundle.reads, "awful"), label="embeddings.word", parse=_token
)
FRAGMENTS = Switch("embeddings_fragments", False, label="embeddings.fragments")
MEASURE = Choice(
    "embeddings_measure", ("cosine", "centred", "euclidean"), label="embeddings.measure", words="embeddings.measure_{}"
)
ANALOGY = Choice("embeddings_analogy", _equations, label="embeddings.analogy", form="list")
OWN_WORDS = tuple(
    Text(
        f"embeddings_{name}",
        lambda view, place=place: next(iter(_analogies(view).values()))[place],
        label=f"embeddings.analogy_{name}",
        parse=_token,
    )
    for place, name in enumerate("abcd")
)


@fragment
def _show_neighbours(view: View) -> None:
    """Show the nearest words of a typed word."""
    words = strings("embeddings")
    found, fragments = show_in_columns(view, WORD, FRAGMENTS, vertical_alignment="center")
    measure = MEASURE.show(view)
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
    show_prose(section("embeddings", measure))
    facts = {"word": plain(found.labels[0]), "norm": f"{near.norm:.3f}", "count": f"{near.candidates:,}"}
    st.caption(t("embeddings.near_facts", **facts, average=f"{near.average:.3f}"))


def known(view: View, word: str) -> Found | None:
    """Return the one token of a word, None where it is none."""
    try:
        return _token(view, word)
    except ValueError:
        return None


@fragment
def _show_analogies(view: View) -> None:
    """Ask at which rank the expected word will be, then show the words nearest to a - b + c."""
    words, chosen = strings("embeddings"), ANALOGY.show(view)
    if chosen == OWN:
        ids = show_in_columns(view, *OWN_WORDS)
    else:
        ids = [known(view, word) for word in _analogies(view)[chosen]]
    given = [found for found in ids if found is not None]
    if len(given) < len(ids):
        if chosen != OWN:
            st.info(words["analogy_absent"], icon=":material/info:")
        return
    a, b, c, expected = (found.ids[0] for found in given)
    shown = EQUATION.format(*(plain(found.labels[0]) for found in given))
    ranks = options_of("embeddings.rank_{}", RANKS)
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


def _show(view: View) -> None:
    """Show the nearest words of a word, and analogies."""
    near_place, analogy_place = st.columns(2, gap="large")
    with near_place:
        st.subheader(t("embeddings.near_heading"), anchor=False)
        _show_neighbours(view)
    with analogy_place:
        st.subheader(t("embeddings.analogy_heading"), anchor=False)
        _show_analogies(view)


NEIGHBOURS = Part("embeddings", "neighbours", _show)
