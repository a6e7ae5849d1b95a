"""Two embeddings of one corpus, one counted and one trained: their neighbours, maps and agreement."""

from typing import Any

import streamlit as st

from pages.embeddings.figures.map import Points, vocabulary_scatter
from pages.embeddings.figures.vectors import word_bars
from pages.embeddings.neighbours import one_token
from pages.kit.asking import Answer, ask
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider, Text, show_in_columns
from pages.kit.device import show_processor
from pages.kit.experiment import ask_first, fragment, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.waiting import awaited
from pages.language import LANGUAGES, language, plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.words.tiny_bert import DIMENSIONS, HIDDEN, KINDS, TRAINING, one_corpus
from transformer_core.analysis.words.two_embeddings import (
    MOST_WINDOW,
    Agreement,
    WordSpace,
    agreement,
    counted_space,
    place_of,
    trained_space,
)

CORPUS = Choice("embeddings_corpus", LANGUAGES, label="embeddings.corpus", default=lambda _: language(), always=True)
WORDS = {
    reads: Text(
        f"embeddings_word_{reads}",
        first,
        label="embeddings.word",
        parse=lambda _, word, reads=reads: one_token(one_corpus(reads).tokenizer, word),
    )
    for reads, first in (("en", "dull"), ("zh", "片"))
}
WINDOW = Slider("embeddings_window", 1, MOST_WINDOW, 4, label="embeddings.window")
DIMENSION = Choice("embeddings_dimension", DIMENSIONS, label="embeddings.dimension", default=32, kind=int)
K = 10
ROOM_OF_NUMBERS = 140
OVERLAPS = {"few": 2, "some": 6, "most": K}


@fragment
def _show(view: View) -> None:
    """Show both embeddings of the corpus."""
    show_processor()
    words = strings("embeddings")
    reads = CORPUS.read()
    with st.spinner(words["reading"]):
        corpus = one_corpus("zh" if reads == "zh" else "en")
    controls = (CORPUS, WORDS[reads], WINDOW, DIMENSION)
    _, found, window, dimension = show_in_columns(view, *controls, widths=(1, 1.2, 1.6, 1.6))
    if found is None:
        return
    word = corpus.tokenizer.token_of(found.ids[0])
    try:
        place_of(corpus.tokenizer, word)
    except ValueError:
        st.info(words["word_special"], icon=":material/info:")
        return
    _show_both({"language": corpus.language, "dimension": dimension, "word": word, "k": K}, window)
    facts = {"texts": f"{len(corpus.texts):,}", "tokens": f"{sum(map(len, corpus.rows)):,}"}
    st.caption(t("embeddings.corpus_facts", **facts, words=f"{corpus.tokenizer.vocab_size:,}"))


def _show_both(asked: dict[str, Any], window: int) -> None:
    words, word, dimension = strings("embeddings"), asked["word"], asked["dimension"]
    counted = ask(counted_space, window=window, **asked)
    options = options_of("embeddings.overlap_{}", OVERLAPS)
    question = section("embeddings", "try_counts").format(word=plain(word))
    cover = ask_first(question, options, name="embeddings_overlap", about=f"{asked['language']} {word}")
    left, right = st.columns(2, gap="large")
    with right:
        st.markdown(f"**{words['trained']}**")
        with cover.picture():
            trained = awaited(trained_space, words["training"], key="embeddings_trained", height=700, **asked)
            if trained is not None:
                facts = _trained_facts(trained.value, dimension)
                _show_space(trained, "trained", word, set(counted.value.neighbours.tolist()), facts)
        show_prose(section("embeddings", "train"))
    near = set(trained.value.neighbours.tolist()) if trained is not None else set()
    with left:
        st.markdown(f"**{words['counted']}**")
        facts = t("embeddings.counted_facts", window=window, dimension=dimension, kept=f"{counted.value.kept:.1%}")
        _show_space(counted, "counted", word, near if cover.open else set(), facts)
    if trained is None:
        return
    shared = len(near.intersection(counted.value.neighbours.tolist()))
    outcome = next(name for name, most in OVERLAPS.items() if shared <= most)
    cover.judge(outcome, t("embeddings.overlap_measured", shared=shared, k=K))
    if cover.open:
        doing = words["comparing"]
        compared = awaited(agreement, doing, key="embeddings_agreement", height=ROOM_OF_NUMBERS, window=window, **asked)
        if compared is not None:
            _show_agreement(compared.value, word)


def _show_agreement(found: Agreement, word: str) -> None:
    """Show which share of neighbours both spaces have in common."""
    own, mean, chance = st.columns(3)
    own.metric(t("embeddings.agree_word", word=plain(word), k=K), f"{found.word:.0%}")
    mean.metric(t("embeddings.agree_mean", k=K), f"{found.mean:.1%}")
    chance.metric(t("embeddings.agree_chance"), f"{found.chance:.1%}")


def _trained_facts(found: WordSpace, dimension: int) -> str:
    first, last = found.losses or (0.0, 0.0)
    facts = {"first": f"{first:.2f}", "last": f"{last:.2f}", "seconds": f"{found.seconds or 0.0:.1f}"}
    facts |= {"epochs": str(TRAINING.epochs), "hidden": f"{HIDDEN:.0%}"}
    return t("embeddings.trained_facts", dimension=dimension, **facts)


def _show_space(answer: Answer[WordSpace], name: str, word: str, shared: set[int], facts: str) -> None:
    words, found = strings("embeddings"), answer.value
    near = found.neighbours.tolist()
    chart = word_bars(
        [found.labels[place] for place in near],
        found.cosine,
        [place in shared for place in near],
        words,
        title=words["axis_cosine"],
        names=(words["not_shared"], words["shared"]),
        low=min(0.0, float(found.cosine.min())),
        high=1.1,
    )
    label = t("embeddings.label_space", name=words[name])
    show_chart(chart, answer, key=f"embeddings_{name}_near", stem=f"{name}_neighbours", label=label)
    say(facts)
    counts = {kind: str(sum(found.kinds[place] == kind for place in near)) for kind in KINDS}
    say(t("embeddings.kinds_facts", word=plain(word), **counts), small=True)
    own = found.labels.index(word) if word in found.labels else None
    marks = dict.fromkeys(near, "neighbour") | ({} if own is None else {own: "searched"})
    kind_names = tuple(words[f"kind_{kind}"] for kind in ("other", "praise", "blame", "thing"))
    kinds = [words[f"kind_{kind}"] for kind in found.kinds]
    points = Points(
        found.xy,
        found.labels,
        kinds=kinds,
        kind_names=kind_names,
        legend=words["kinds"],
        details={words["kinds"]: kinds},
        marks=marks,
    )
    axes = (words["axis_plain"].format(number=1), words["axis_plain"].format(number=2))
    chart = vocabulary_scatter(points, words, axes=axes, height=420)
    show_chart(chart, answer, key=f"embeddings_{name}_map", stem=f"{name}_map", label=label)
    say(t("embeddings.trust", trust=f"{found.trustworthiness:.3f}"), small=True)


COUNTS = Part("embeddings", "counts", _show)
