"""Five schemes of positions (none, sinusoidal, learned, rotary, ALiBi) by their effect on the scores of one word."""

from typing import Any

import streamlit as st

from pages.positions.figures.models import distance_chart, schemes_figure
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import Drawing, show_drawing
from pages.ui.experiment import ask_first, fragment, lazy_box
from pages.ui.exports import one_export
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.models import READERS, model_names, open_bundle
from pages.ui.number_format import markdown_table, significant
from pages.ui.pickers import choose_head, chosen_number, numbers
from pages.ui.url import choose, choose_from_list, chosen_option, slid, slide
from transformer_core.analysis.parts import position_vectors
from transformer_core.analysis.positions.schemes import SchemeScores, score_schemes
from transformer_core.bundle import Bundle
from transformer_core.bundle_files import BundleError

SHOWN = ("scores", "terms", "weights")
MOST_PLACES = 64
WORD, LENGTH = "positions_word", "positions_places"


def models_at_hand() -> list[str]:
    """Return the names of all available Transformers: those in folders first, then finished runs."""
    return list(model_names(None, (*READERS, "translation")))


def _model_with_learned_table(view: View) -> Bundle | None:
    """Return a model with learned position vectors: this one, else the first available one of its width."""
    if position_vectors(view.bundle) is not None:
        return view.bundle
    for name in models_at_hand():
        try:
            bundle = open_bundle(name)
        except BundleError:
            continue
        if position_vectors(bundle) is not None and bundle.config.d_model == view.bundle.config.d_model:
            return bundle
    return None


def choose_word(view: View, label: str) -> int:
    """Show the text's tokens, special ones last, and return the place of the chosen one."""
    names = {str(place): f"{place} {view.encoding.labels[place]}" for place in _places(view)}
    return int(choose_from_list(label, names, name=WORD) or 0)


def chosen_word(view: View) -> int:
    """Return the place of the chosen token, without the list."""
    places = [str(place) for place in _places(view)]
    return int(chosen_option(WORD, places, default=places[0]))


def _places(view: View) -> list[int]:
    return sorted(range(len(view.encoding)), key=view.encoding.special.__getitem__)


def _length_ends(view: View) -> dict[str, Any]:
    most = min(MOST_PLACES, view.bundle.config.max_len)
    return {"low": 2, "high": most, "name": LENGTH, "default": min(32, most)}


def _pairs(view: View) -> list[str]:
    return ["all", *numbers((view.bundle.config.d_head or 0) // 2)]


def _choose(view: View) -> None:
    """Show the controls."""
    token_place, head_place = st.columns([1, 2])
    with token_place:
        choose_word(view, t("positions.word"))
    with head_place:
        choose_head(t("positions.head"), view.bundle.config.n_heads)
    length_place, pair_place = st.columns(2)
    with length_place:
        if _length_ends(view)["high"] > 2:
            slide(t("positions.places"), **_length_ends(view))
    with pair_place:
        pairs = dict(zip(_pairs(view), _pairs(view), strict=True)) | {"all": t("positions.pair_all")}
        choose_from_list(t("positions.rotary_pair"), pairs, name="positions_rotary")


def _chosen(view: View) -> dict[str, int]:
    """Return the arguments that the controls set, without them."""
    ends, pair = _length_ends(view), chosen_option("positions_rotary", _pairs(view), default="all")
    return {
        "place": chosen_word(view),
        "head": chosen_number("head", view.bundle.config.n_heads),
        "length": int(slid(**ends)) if ends["high"] > 2 else ends["high"],
        "pair": -1 if pair == "all" else int(pair),
    }


def _titles(found: SchemeScores) -> list[str]:
    """Return the schemes' names: the learned one with its model, ALiBi with its slope."""
    learned = t("positions.learned_of", model=found.learned_from) if found.learned_from else t("positions.learned_raw")
    own = {"learned": learned, "alibi": t("positions.alibi_slope", slope=significant(found.slope, 4))}
    return [own.get(scheme) or t(f"positions.scheme_{scheme}") for scheme in found.schemes]


def _table(found: SchemeScores, names: list[str]) -> str:
    head = [t(f"positions.fact_{name}") for name in ("scheme", "numbers", "spread")]
    rows = [
        (plain(name), f"{count:,}", significant(spread))
        for name, count, spread in zip(names, found.parameters.tolist(), found.deviation.tolist(), strict=True)
    ]
    return markdown_table(head, rows, right=2)


def _try_peak(answer: Answer[SchemeScores], chosen: dict[str, int]) -> None:
    """Ask at which place a rotated query has its greatest score, then show it."""
    box = lazy_box(t("positions.try_peak"), icon=":material/science:", key="positions_try_schemes")
    if box is None:
        return
    found, query = answer.value, chosen["length"] // 2
    options = {name: t(f"positions.peak_{name}") for name in ("here", "before", "after")}
    with box:
        question = section("positions", "try_peak").format(word=plain(found.token), query=query)
        cover = ask_first(question, options, name="positions_peak", about=f"{chosen} {found.token}")
        row = found.terms[found.schemes.index("rotary"), query]
        best = int(row.argmax())
        outcome = "here" if best == query else "before" if best < query else "after"
        numbers = t(
            "positions.peak_measured", best=best, most=f"{row[best]:.4f}", query=query, here=f"{row[query]:.4f}"
        )
        cover.judge(outcome, numbers)


def live_schemes(view: View) -> Live:
    """Return the scores of one word at every pair of places under each scheme, and one query's row of them.

    Raises:
        ValueError: as score_schemes.
    """
    chosen, shown = _chosen(view), chosen_option("positions_shown", SHOWN, default="scores")
    answer = ask_once(score_schemes, **view.asked, learned=_model_with_learned_table(view), **chosen)
    found, words, query = answer.value, strings("positions"), chosen["length"] // 2
    names, values = _titles(found), {"scores": found.scores, "terms": found.terms, "weights": found.weights}[shown]
    version = f"{shown}|{chosen}|{view.encoding.text}"
    figure = schemes_figure(values, names, words, strings("matrix"), shown=shown, version=version)
    chart = distance_chart(values, names, words, query=query, shown=shown)
    label = t("positions.distance_label", query=query)
    drawing = Drawing("positions_distance", chart, answer, "positions_distance", label)
    return Live((Picture("positions_schemes", figure, answer),), drawings=(drawing,))


@fragment
@one_export
def schemes_part(view: View) -> None:
    """Show the scores of one word at every pair of places, under each scheme."""
    _choose(view)
    chosen = _chosen(view)
    shown = choose(
        t("positions.shown"),
        {name: t(f"positions.shown_{name}") for name in SHOWN},
        name="positions_shown",
        default="scores",
    )
    try:
        live = live_schemes(view)
    except ValueError as error:
        st.info(t("positions.cannot", error=plain(str(error))), icon=":material/info:")
        return
    (picture,) = (one for one in live.pictures if isinstance(one, Picture))
    answer: Answer[SchemeScores] = picture.answer
    found = answer.value
    show_picture(picture)
    heads = {"head": (numbers(view.bundle.config.n_heads), str(chosen["head"]))}
    sliders = {LENGTH: chosen["length"]}
    follow_finger("positions", "schemes", view, choices=heads | {"positions_shown": (SHOWN, shown)}, sliders=sliders)
    st.markdown(section("positions", f"shown_{shown}").format(word=plain(found.token), head=chosen["head"]))
    export_picture(picture)
    if not found.learned_from:
        tell(section("positions", "untrained"), small=True)
    curves, facts = st.columns([3, 2], gap="large")
    with curves:
        show_drawing(live.drawings[0])
    with facts:
        st.markdown(_table(found, _titles(found)))
        st.caption(t("positions.facts_note"))
    _try_peak(answer, chosen)
