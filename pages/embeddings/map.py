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
from pages.embeddings.neighbours import known
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider, Switch, Text, show_in_columns
from pages.kit.experiment import ask_first, experiment, fragment, options_of
from pages.kit.exports import Files, code_files, offer_files, rows_csv, to_npz
from pages.kit.header import View
from pages.kit.verdict import class_word
from pages.kit.waiting import awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.words.vocabulary_map import VocabularyMap, vocabulary_map

SIDES = {"low": 0.6, "middle": 0.8, "high": 1.0}
SEARCHED = {"zh": "差 好"}  # by the language that a model reads
SEARCH = Text(
    "embeddings_search", lambda view: SEARCHED.get(view.bundle.reads, "boring superb"), label="embeddings.search"
)
METHOD = Choice("embeddings_method", ("tsne", "pca", "space"), label="embeddings.method", words="embeddings.method_{}")
COLOUR = Choice("embeddings_colour", ("verdict", "plain"), label="embeddings.colour", words="embeddings.colour_{}")
COUNT = Slider("embeddings_count", 250, 2000, 1500, step=250, label="embeddings.count")
FRAGMENTS = Switch("embeddings_map_fragments", False, label="embeddings.fragments")
SPECIAL = Switch("embeddings_special", False, label="embeddings.special")
WIDTHS = (2, 1.6, 1.4)  # of controls in a row
MOST_TERMS, MOST_FOUND, MOST_CHARACTERS = 8, 20, 200


@fragment
def _show(view: View) -> None:
    """Show the map with its controls."""
    words = strings("embeddings")
    query, method, colour = show_in_columns(view, SEARCH, METHOD, COLOUR, widths=WIDTHS, vertical_alignment="bottom")
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
    if found.same_side is not None and found.same_side_by_chance is not None:
        _try_sides(view, len(found.ids), found.same_side, found.same_side_by_chance)


def _draw(view: View, method: str, picture: DeltaGenerator) -> Answer[VocabularyMap] | None:
    """Show below the picture what is on it, and lay it out; None, with the reason, where there is too little."""
    words = strings("embeddings")
    count, fragments, special = show_in_columns(
        view, COUNT, FRAGMENTS, SPECIAL, widths=WIDTHS, vertical_alignment="bottom"
    )
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
        one = known(view, term)
        own = [place_of[id_] for id_ in one.ids if id_ in place_of] if one else []
        for place in own:
            near |= dict.fromkeys(found.neighbours[place].tolist(), "neighbour")
        alike = [place for place, label in enumerate(found.labels) if term.lower() in label.lower()]
        places = own or alike[:MOST_FOUND]
        searched |= dict.fromkeys(places, "searched")
        if not places:
            missing.append(term)
    return marks | near | searched, missing


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


@experiment("embeddings_try_map", "embeddings.try_map")
def _try_sides(view: View, count: int, share: float, chance: float) -> None:
    """Ask how many neighbours move the verdict to the same side, then show the measured share."""
    options, question = options_of("embeddings.side_{}", SIDES), section("embeddings", "try_map")
    cover = ask_first(question, options, name="embeddings_sides", about=f"{view.bundle.name} {count}")
    outcome = next(name for name, most in SIDES.items() if share <= most)
    cover.judge(outcome, t("embeddings.side_measured", share=f"{share:.1%}", chance=f"{chance:.1%}"))


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


MAP = Part("embeddings", "map", _show)
