"""Five schemes of positions (none, sinusoidal, learned, rotary, ALiBi) by their effect on the scores of one word."""

import streamlit as st

from pages.positions.figures.models import distance_chart, schemes_figure
from pages.ui.asking import Answer, ask_once
from pages.ui.boxes import ask_first, lazy_box
from pages.ui.charts import show_chart
from pages.ui.exports import export_matrix
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.matrix import show_matrix
from pages.ui.models import READERS, model_names, open_bundle
from pages.ui.number_format import markdown_table, significant
from pages.ui.pickers import choose_head
from pages.ui.url import choose, choose_from_list, slide
from transformer_core.analysis.parts import position_vectors
from transformer_core.analysis.positions.schemes import SchemeScores, score_schemes
from transformer_core.bundle import Bundle
from transformer_core.bundle_files import BundleError

SHOWN = ("scores", "terms", "weights")
MOST_PLACES = 64


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
    encoding = view.encoding
    places = sorted(range(len(encoding)), key=encoding.special.__getitem__)
    names = {str(place): f"{place} {encoding.labels[place]}" for place in places}
    return int(choose_from_list(label, names, name="positions_word") or 0)


def _choices(view: View) -> dict[str, int]:
    """Show the controls and return the arguments that they set."""
    config = view.bundle.config
    token_place, head_place = st.columns([1, 2])
    with token_place:
        place = choose_word(view, t("positions.word"))
    with head_place:
        head = choose_head(t("positions.head"), config.n_heads)
    length_place, pair_place = st.columns(2)
    most = min(MOST_PLACES, config.max_len)
    with length_place:
        length = most
        if most > 2:
            length = slide(t("positions.places"), 2, most, name="positions_places", default=min(32, most))
    with pair_place:
        pairs = {"all": t("positions.pair_all")} | {str(i): str(i) for i in range((config.d_head or 0) // 2)}
        pair = choose_from_list(t("positions.rotary_pair"), pairs, name="positions_rotary")
    chosen = -1 if pair in (None, "all") else int(pair)
    return {"place": place, "head": head, "length": int(length), "pair": chosen}


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


@st.fragment
def schemes_part(view: View) -> None:
    """Show the scores of one word at every pair of places, under each scheme."""
    chosen = _choices(view)
    shown = choose(
        t("positions.shown"),
        {name: t(f"positions.shown_{name}") for name in SHOWN},
        name="positions_shown",
        default="scores",
    )
    try:
        answer = ask_once(score_schemes, **view.asked, learned=_model_with_learned_table(view), **chosen)
    except ValueError as error:
        st.info(t("positions.cannot", error=plain(str(error))), icon=":material/info:")
        return
    found, words = answer.value, strings("positions")
    names = _titles(found)
    values = {"scores": found.scores, "terms": found.terms, "weights": found.weights}[shown]
    version = f"{shown}|{chosen}|{view.encoding.text}"
    figure = schemes_figure(values, names, words, strings("matrix"), shown=shown, version=version)
    show_matrix(figure, answer, key="positions_schemes")
    st.markdown(section("positions", f"shown_{shown}").format(word=plain(found.token), head=chosen["head"]))
    export_matrix(figure, answer, key="positions_schemes")
    if not found.learned_from:
        tell(section("positions", "untrained"), small=True)
    curves, facts = st.columns([3, 2], gap="large")
    with curves:
        query = chosen["length"] // 2
        show_chart(
            distance_chart(values, names, words, query=query, shown=shown),
            answer,
            key="positions_distance",
            stem="positions_distance",
            label=t("positions.distance_label", query=query),
        )
    with facts:
        st.markdown(_table(found, names))
        st.caption(t("positions.facts_note"))
    _try_peak(answer, chosen)
