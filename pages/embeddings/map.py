"""A map of the vocabulary that can be searched: t-SNE or PCA, in two dimensions or three."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.embeddings.figures.map import (
    Points,
    colour_bound,
    extremes,
    rows_of,
    to_html,
    vocabulary_scatter,
    vocabulary_space,
)
from pages.ui.asking import Answer
from pages.ui.charts import show_chart
from pages.ui.experiment import ask_first, fragment, lazy_box
from pages.ui.exports import Files, code_files, offer_files
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.table_files import rows_csv, to_npz
from pages.ui.url import choose, slide, suggested_text_input, switch
from pages.ui.verdict import class_word
from pages.ui.waiting import awaited
from transformer_core.analysis.words.vocabulary import find
from transformer_core.analysis.words.vocabulary_map import VocabularyMap, vocabulary_map

SIDES = {"low": 0.6, "middle": 0.8, "high": 1.0}
METHODS = ("tsne", "pca", "space")
SEARCHED = {"zh": "差 好"}  # by the language that a model reads
MOST_TERMS, MOST_FOUND, MOST_CHARACTERS = 8, 20, 200


@fragment
def show_map(view: View) -> None:
    """Show the map with its controls."""
    words = strings("embeddings")
    query, method, colour = _choices(view.bundle.reads)
    picture = st.container()
    answer = _draw(view, method, picture)
    if answer is None:
        return
    found = answer.value
    marks, missing = _search(view, found, query)
    names = [class_word(label) for label in view.bundle.labels]
    signed = colour == "verdict" and found.verdicts is not None
    values = found.verdicts if signed else None
    details = {words["axis_id"]: found.ids, words["axis_norm"]: found.norms}
    if found.verdicts is not None:
        details[t("embeddings.verdict", label=names[-1])] = found.verdicts
    points = Points(
        found.xy,
        found.labels,
        values=values,
        legend=t("embeddings.verdict", label=names[-1]) if signed else "",
        details=details,
        marks=marks,
        named=extremes(values) if values is not None else (),
    )
    if names:
        words["side_up"] = t("embeddings.towards", label=names[-1])
        words["side_down"] = t("embeddings.towards", label=names[0])
    with picture:
        if missing:
            st.caption(t("embeddings.not_on_map", words=", ".join(map(plain, missing))))
        if found.xy.shape[1] == 3:
            _show_space(points, answer, words)
        else:
            chart = vocabulary_scatter(points, words, axes=_axes(found, words))
            show_chart(chart, answer, key="embeddings_map_chart", stem="vocabulary_map", label=words["label_map"])
        _facts(found, signed)
    _try_sides(view, found)


def _choices(reads: str) -> tuple[str, str, str]:
    words = strings("embeddings")
    search_place, method_place, colour_place = st.columns([2, 1.6, 1.4], vertical_alignment="bottom")
    with search_place:
        first = SEARCHED.get(reads, "boring superb")
        query = suggested_text_input(words["search"], first, name="embeddings_search")
    with method_place:
        options = {name: words[f"method_{name}"] for name in METHODS}
        method = choose(words["method"], options, name="embeddings_method", default=METHODS[0])
    with colour_place:
        colours = {"verdict": words["colour_verdict"], "plain": words["colour_plain"]}
        colour = choose(words["colour"], colours, name="embeddings_colour", default="verdict")
    return query, method, colour


def _draw(view: View, method: str, picture: DeltaGenerator) -> Answer[VocabularyMap] | None:
    """Show below the picture what is on it, and lay it out; None, with the reason, where there is too little."""
    words = strings("embeddings")
    count_place, fragments_place, special_place = st.columns([2, 1.6, 1.4], vertical_alignment="bottom")
    with count_place:
        count = slide(words["count"], 250, 2000, name="embeddings_count", default=1500, step=250)
    with fragments_place:
        fragments = switch(words["fragments"], name="embeddings_map_fragments", default=False)
    with special_place:
        special = switch(words["special"], name="embeddings_special", default=False)
    asked = {"count": count, "method": method, "fragments": fragments, "special": special}
    with picture:
        try:
            return awaited(
                vocabulary_map, words["drawing"], key="embeddings_map", height=740, bundle=view.bundle, **asked
            )
        except ValueError as error:
            st.info(t("embeddings.too_small", error=plain(str(error))), icon=":material/info:")
            return None


def _search(view: View, found: VocabularyMap, query: str) -> tuple[dict[int, str], list[str]]:
    """Return the mark of each marked point, and the typed words that are not on the map."""
    place_of = {id_: place for place, id_ in enumerate(found.ids.tolist())}
    marks = {place_of[id_]: "sentence" for id_ in view.encoding.ids if id_ in place_of}
    missing, near = [], {}
    searched: dict[int, str] = {}
    for term in query[:MOST_CHARACTERS].split()[:MOST_TERMS]:
        own = [place_of[id_] for id_ in _ids_of(view, term) if id_ in place_of]
        for place in own:
            near |= dict.fromkeys(found.neighbours[place].tolist(), "neighbour")
        alike = [place for place, label in enumerate(found.labels) if term.lower() in label.lower()]
        places = own or alike[:MOST_FOUND]
        searched |= dict.fromkeys(places, "searched")
        if not places:
            missing.append(term)
    return marks | near | searched, missing


def _ids_of(view: View, term: str) -> tuple[int, ...]:
    try:
        found = find(view.bundle.tokenizer, term)
    except ValueError:
        return ()
    return found.ids if found.known and len(found.ids) == 1 else ()


def _axes(found: VocabularyMap, words: dict[str, str]) -> tuple[str, ...]:
    if not len(found.explained):
        return tuple(words["axis_tsne"].format(number=number) for number in (1, 2))
    shares = enumerate(found.explained.tolist(), start=1)
    return tuple(words["axis_pca"].format(number=number, share=f"{share:.1%}") for number, share in shares)


def _facts(found: VocabularyMap, signed: bool) -> None:
    facts = {"count": f"{len(found.ids):,}", "trust": f"{found.trustworthiness:.3f}", "seconds": f"{found.seconds:.2f}"}
    st.caption(t("embeddings.map_facts", **facts))
    if signed and found.verdicts is not None:
        st.caption(t("embeddings.colour_end", bound=f"{colour_bound(found.verdicts):.2f}"))
    if len(found.explained):
        st.caption(t("embeddings.explained", share=f"{found.explained.sum():.1%}", axes=len(found.explained)))


def _try_sides(view: View, found: VocabularyMap) -> None:
    """Ask how many neighbours move the verdict to the same side, then show the measured share."""
    if found.same_side is None or found.same_side_by_chance is None:
        return
    box = lazy_box(t("embeddings.try_map"), icon=":material/science:", key="embeddings_try_map")
    if box is None:
        return
    with box:
        options = {name: t(f"embeddings.side_{name}") for name in SIDES}
        question = section("embeddings", "try_map")
        cover = ask_first(question, options, name="embeddings_sides", about=f"{view.bundle.name} {len(found.ids)}")
        outcome = next(name for name, most in SIDES.items() if found.same_side <= most)
        facts = {"share": f"{found.same_side:.1%}", "chance": f"{found.same_side_by_chance:.1%}"}
        cover.judge(outcome, t("embeddings.side_measured", **facts))


def _show_space(points: Points, answer: Answer[VocabularyMap], words: dict[str, str]) -> None:
    figure = vocabulary_space(points, words, axes=_axes(answer.value, words))
    config = {"toImageButtonOptions": {"filename": "vocabulary_space", "scale": 2}, "displaylogo": False}
    st.plotly_chart(figure, width="stretch", key="embeddings_space_chart", config=config)
    files: Files = {
        "csv": lambda: rows_csv(rows_of(points)).encode("utf-8-sig"),
        "npz": lambda: to_npz(answer.arrays),
        "html": lambda: to_html(figure),
    }
    offer_files(
        lambda: files | code_files(answer),
        key="embeddings_space_files",
        stem="vocabulary_space",
        note=section("embeddings", "space_files"),
    )
