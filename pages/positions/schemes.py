"""Five schemes of positions (none, sinusoidal, learned, rotary, ALiBi) by their effect on the scores of one word."""

import numpy as np
import streamlit as st

from pages.figures.curves import Side, curves
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Choice, Slider, Values, head_control, show_in_columns
from pages.kit.experiment import ask_first, experiment, fragment, options_of
from pages.kit.exports import one_export
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, export_picture, show_picture
from pages.kit.models import READERS, model_names, open_bundle
from pages.kit.number_format import markdown_table, significant
from pages.language import joined, plain, section, strings, t
from pages.positions.figures.models import distance_chart, schemes_figure
from pages.room import Part
from transformer_core.analysis.parts import position_vectors
from transformer_core.analysis.positions.schemes import SchemeScores, rotary_of, score_schemes
from transformer_core.bundle import Bundle
from transformer_core.layers.positions import ROTARY
from transformer_core.untrusted.bundle_files import BundleError

MOST_PLACES = 64


def models_at_hand() -> list[str]:
    """Return the names of all available Transformers: those in folders first, then finished runs."""
    return list(model_names(None, (*READERS, "translation")))


def model_with_learned_table(view: View) -> Bundle | None:
    """Return a model with learned position vectors: this one, else the first available one of its width."""
    if position_vectors(view.bundle) is not None:
        return view.bundle
    for name in models_at_hand():
        try:
            bundle = open_bundle(name)
        except BundleError:
            continue
        if position_vectors(bundle) is not None and bundle.config.d_embedding == view.bundle.config.d_embedding:
            return bundle
    return None


def word_control(label: str) -> Choice[int]:
    """Return the choice of a token of the text by its place, special ones last."""

    def words(view: View) -> dict[str, str]:
        places = sorted(range(len(view.encoding)), key=view.encoding.special.__getitem__)
        return {str(place): f"{place} {view.encoding.labels[place]}" for place in places}

    return Choice("positions_word", words, label=label, kind=int, form="list")


def _most_places(view: View) -> int:
    return min(MOST_PLACES, view.bundle.config.max_len)


def _pairs(view: View) -> dict[str, str]:
    config = view.bundle.config
    count = (rotary_of(config).dims or config.d_head or 0) // 2
    return {"all": t("positions.pair_all")} | {str(pair): str(pair) for pair in range(count)}


WORD, HEAD = word_control("positions.word"), head_control("positions.head")
LENGTH = Slider("positions_places", 2, _most_places, lambda view: min(32, _most_places(view)), label="positions.places")
PAIR = Choice("positions_rotary", _pairs, label="positions.rotary_pair", form="list")
SHOWN = Choice("positions_shown", ("scores", "terms", "weights"), label="positions.shown", words="positions.shown_{}")


def _arguments(values: Values) -> dict[str, int]:
    """Return the arguments of score_schemes that are chosen."""
    pair = values[PAIR]
    return {
        "place": values[WORD],
        "head": values[HEAD],
        "length": values[LENGTH],
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


@experiment("positions_try_schemes", "positions.try_peak")
def _try_peak(found: SchemeScores, chosen: dict[str, int]) -> None:
    """Ask at which place a rotated query has its greatest score, then show it."""
    query, options = chosen["length"] // 2, options_of("positions.peak_{}", ("here", "before", "after"))
    question = section("positions", "try_peak").format(word=plain(found.token), query=query)
    cover = ask_first(question, options, name="positions_peak", about=f"{chosen} {found.token}")
    row = found.terms[found.schemes.index("rotary"), query]
    best = int(row.argmax())
    outcome = "here" if best == query else "before" if best < query else "after"
    most, here = f"{row[best]:.4f}", f"{row[query]:.4f}"
    cover.judge(outcome, t("positions.peak_measured", best=best, most=most, query=query, here=here))


def _picture(view: View, values: Values) -> Live:
    """Return the scores of one word at every pair of places under each scheme, and one query's row of them.

    Raises:
        ValueError: as score_schemes.
    """
    chosen, shown = _arguments(values), values[SHOWN]
    answer = ask_once(score_schemes, prompt=view.prompt, learned=model_with_learned_table(view), **chosen)
    found, words, query = answer.value, strings("positions"), chosen["length"] // 2
    names, scores = _titles(found), {"scores": found.scores, "terms": found.terms, "weights": found.weights}[shown]
    version = f"{shown}|{chosen}|{view.encoding.text}"
    figure = schemes_figure(scores, names, words, shown=shown)
    picture = Picture("positions_schemes", figure, answer, version=version)
    chart = distance_chart(scores, names, words, query=query, shown=shown)
    label = t("positions.distance_label", query=query)
    drawing = Drawing("positions_distance", chart, answer, "positions_distance", label)
    return Live((picture,), drawings=(drawing, _turns(view, answer)))


def _turns(view: View, answer: Answer[SchemeScores]) -> Drawing:
    """Return how many positions each rotary pair takes for a turn, with the model's greatest length."""
    found, most = answer.value, view.bundle.config.max_len
    several = len(found.layers) > 1
    series = {
        t("positions.turns_of", layers=", ".join(map(str, layers))) if several else t("positions.turns"): turns
        for layers, turns in zip(found.layers, found.wavelengths, strict=True)
    }
    pairs, limit = np.arange(found.wavelengths.shape[1]), t("positions.turns_most", most=f"{most:,}")
    chart = curves(
        pairs,
        series | {limit: np.full(len(pairs), float(most))},
        across=Side(t("positions.turns_pair")),
        up=Side(t("positions.axis_wavelength"), log=True),
        guides={limit: float(pairs[-1])},  # its name ends there
        points=False,
    )
    return Drawing("positions_turns", chart, answer, "positions_turns", t("positions.turns_label"))


def _slow(view: View, found: SchemeScores) -> str:
    """Return in words how many pairs turn less than once over the model's length, and where its angles come from."""
    config, turns = view.bundle.config, found.wavelengths
    slow, most = int((turns > config.max_len).sum()), config.max_len
    rotary, window = config.positions == "rotary", config.rotary_base_in_window
    base = f"{config.rotary_base if rotary else ROTARY.base:,g}"
    angles = [t(f"positions.turns_{'own' if rotary else 'paper'}", base=base)]
    angles += [t("positions.turns_in_window", base=f"{window:,g}")] if rotary and window and any(config.windows) else []
    scaled = rotary and config.rotary_scaling != "none"
    how = t("positions.turns_scaled", name=config.rotary_scaling, factor=f"{config.rotary_factor:g}") if scaled else ""
    said = t("positions.turns_slow", count=slow, all=turns.size, most=f"{most:,}")
    return joined(*angles, *filter(None, (how, said)))


@fragment
@one_export
def _show(view: View) -> None:
    """Show the scores of one word at every pair of places, under each scheme."""
    show_in_columns(view, WORD, HEAD, widths=(1, 2))
    show_in_columns(view, LENGTH, PAIR)
    SHOWN.show(view)
    values = SCHEMES.values(view)
    try:
        live = SCHEMES.live(view)
    except ValueError as error:
        st.info(t("positions.cannot", error=plain(str(error))), icon=":material/info:")
        return
    (picture,) = live.matrices
    found: SchemeScores = picture.answer.value
    show_picture(picture)
    SCHEMES.follow(view)
    about = section("positions", f"shown_{values[SHOWN]}")
    st.markdown(about.format(word=plain(found.token), head=values[HEAD]))
    export_picture(picture)
    if not found.learned_from:
        show_prose(section("positions", "untrained"), small=True)
    curves, facts = st.columns([3, 2], gap="large")
    with curves:
        show_drawing(live.drawings[0])
    with facts:
        st.markdown(_table(found, _titles(found)))
        st.caption(t("positions.facts_note"))
    show_drawing(live.drawings[1])
    st.caption(_slow(view, found))
    _try_peak(found, _arguments(values))


SCHEMES = Part("positions", "schemes", _show, _picture, (WORD, HEAD, LENGTH, PAIR, SHOWN))
