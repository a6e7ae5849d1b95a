"""What order is worth: trained models measured with positions shuffled or removed, and with tokens shuffled."""

from collections.abc import Callable

import streamlit as st

from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Switch
from pages.kit.experiment import ask_first, options_of, say
from pages.kit.exports import one_export
from pages.kit.glossary import show_prose
from pages.kit.header import MOST_TOKENS, View
from pages.kit.models import kind_of, model_names, offer_model, open_or_say
from pages.kit.number_format import markdown_table, significant
from pages.kit.verdict import class_word
from pages.kit.waiting import awaited
from pages.language import is_foreign, joined, plain, section, strings, t
from pages.positions.figures.models import ALIKE, order_chart
from pages.positions.schemes import models_at_hand
from pages.room import Part
from transformer_core.analysis.positions.order_effect import (
    MEASURES,
    OrderEffect,
    order_effect_here,
    order_effect_on_set,
)
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

WORK = 500_000_000  # parameters times texts: a few seconds on two cores
MOST_TEXTS, FEWEST_TEXTS = 200, 24
MOST_SENTENCES = 40  # of a translator, which first has to write
MOST_MODELS = 6
LITTLE, MUCH = 0.01, 0.1  # of accuracy
APART = 0.05  # of the share of guesses that move: tasks that differ by less are called alike
SEEDS = 5
HEIGHT = 480  # of a figure and its table
SHARES = (2, 3)  # of the width: figure and words
ALL = Switch("positions_all", True, label=lambda view: t("positions.all_models", count=len(_names(view))))


def _called(name: str) -> str:
    """Return the displayed name of a model."""
    return model_names(name).get(name, name)


def texts_for(bundle: Bundle) -> int:
    """Return how many reviews, or sentences, a model reads: fewer for a larger one."""
    most = MOST_SENTENCES if bundle.kind == "translation" else MOST_TEXTS
    return max(FEWEST_TEXTS, min(most, WORK // bundle.n_parameters))


def _answer(function: Callable[..., OrderEffect], **arguments) -> Answer[OrderEffect] | None:
    try:
        bundle = arguments["prompt"].bundle if "prompt" in arguments else arguments["bundle"]
        key = f"positions_{function.__name__}_{bundle.name}"
        return awaited(function, t("positions.measuring"), key=key, height=HEIGHT, **arguments)
    except ValueError as error:
        st.info(t("positions.cannot", error=plain(str(error))), icon=":material/info:")
        return None


def _ways(found: OrderEffect) -> str:
    if found.ways_differ is None:
        return t("positions.ways_causal")
    return t("positions.ways_same", difference=significant(found.ways_differ))


def _table(found: OrderEffect) -> str:
    """Return a table of each treatment: the mean and, where it shuffles, the standard deviation over seeds."""
    columns = {"right": (found.accuracy, 100, 1)}
    if found.plain is not None and found.turned is not None:
        columns |= {"plain": (found.plain, 100, 1), "turned": (found.turned, 100, 1)}
    columns |= {"nats": (found.nats, 1, 3), "moved": (found.moved, 100, 1)}
    head = [t("positions.order_treatment"), *(t(f"positions.order_{name}") for name in columns)]
    rows = []
    for place, treatment in enumerate(found.treatments):
        cells = [t(f"positions.treatment_{treatment}")]
        for values, scale, digits in columns.values():
            mean, spread = f"{scale * values[place].mean():.{digits}f}", f"{scale * values[place].std():.{digits}f}"
            shuffled = f"{mean}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{spread}"
            cells.append("–" if mean == "nan" else mean if treatment in ALIKE else shuffled)
        rows.append(cells)
    return markdown_table(head, rows, right=len(columns))


def _measured(bundle: Bundle) -> Answer[OrderEffect] | None:
    """Show what order is worth to one model on the reviews."""
    answer = _answer(order_effect_on_set, bundle=bundle, texts=texts_for(bundle), seeds=SEEDS)
    if answer is None:
        return None
    found, words = answer.value, strings("positions")
    values = found.accuracy if found.measure == "accuracy" else found.nats
    chart = order_chart(
        values,
        found.treatments,
        words,
        axis=words[f"axis_{bundle.kind}"],
        whole=found.measure == "accuracy",
        title=_called(bundle.name),
    )
    key, label = (
        f"positions_order_{bundle.name}".replace(":", "_"),
        t("positions.order_label", model=_called(bundle.name)),
    )
    picture, figures = st.columns(SHARES, gap="large")
    with picture:
        show_chart(chart, answer, key=key, stem="positions_order", label=label)
    say(_table(found), at=figures)
    translates = bundle.kind == "translation"
    note = t(
        "positions.order_note",
        texts=found.texts,
        guesses=f"{found.guesses:,}",
        language=t(f"positions.{'sentences' if translates else 'corpus'}_{found.language}"),
        seeds=values.shape[1],
    )
    own = (t("positions.order_written"),) if translates else ()
    say(joined(note, *own, _ways(found)), at=figures, small=True)
    return answer


def _outcome(found: OrderEffect) -> str:
    """Return the option of the prediction that fits the accuracy lost by shuffled positions."""
    lost = float(found.accuracy[0].mean() - found.accuracy[1].mean())
    if lost < -LITTLE:
        return "gains"
    if lost <= LITTLE:
        return "nothing"
    return "much" if lost > MUCH else "some"


def _show_here(view: View) -> None:
    """Show a classifier's verdict on the typed text with order, shuffled and removed."""
    bundle, words = view.bundle, strings("positions")
    answer = _answer(order_effect_here, prompt=Prompt(bundle, view.encoding.text, len(view.encoding)), seeds=20)
    if answer is None or answer.value.probabilities is None:
        return
    found, probabilities = answer.value, answer.value.probabilities
    winner = int(probabilities[0, 0].argmax())
    axis = t("positions.axis_p", label=class_word(bundle.labels[winner]))
    chart = order_chart(probabilities[:, :, winner], found.treatments, words, axis=axis, whole=True)
    label = t("positions.order_label", model=_called(bundle.name))
    picture, words_place = st.columns(SHARES, gap="large")
    with picture:
        show_chart(chart, answer, key="positions_here", label=label)
    flips = int((probabilities[1].argmax(-1) != winner).sum())
    seeds = probabilities.shape[1]
    words_place.markdown(t("positions.here_flips", flips=flips, seeds=seeds))
    words_place.caption(f"{t('positions.here_note', seeds=seeds)} {_ways(found)}")


def _show_moves_here(bundle: Bundle, text: str) -> None:
    """Say what order is worth to another model on the typed text, in nats a guess."""
    n_tokens = min(MOST_TOKENS, bundle.config.max_len)
    answer = _answer(order_effect_here, prompt=Prompt(bundle, text, n_tokens), seeds=SEEDS)
    if answer is not None:
        kept, shuffled, removed, _ = (f"{nats:.3f}" for nats in answer.value.nats.mean(1))
        st.markdown(t("positions.here_nats", kept=kept, shuffled=shuffled, removed=removed, seeds=SEEDS))


def _names(view: View) -> list[str]:
    """Return the names of the other models to measure: the first of each kind, then more."""
    kinds = {name: kind_of(name) for name in models_at_hand()}
    names = [name for name, kind in kinds.items() if name != view.bundle.name and kind in (*MEASURES, None)]
    firsts = {kinds[name]: name for name in reversed(names) if kinds[name] != view.bundle.kind}.values()
    return sorted(names, key=lambda name: name not in firsts)[:MOST_MODELS]


def _others(view: View) -> list[tuple[Bundle, OrderEffect]]:
    """Measure other available models, at least one of each kind, and return what was found."""
    names = _names(view)
    if not names:
        st.caption(t("positions.no_others"))
        return []
    if not ALL.show(view):
        return []
    found = []
    for name in names:
        bundle = open_or_say(name)
        if bundle is None or bundle.kind not in MEASURES or (answer := _measured(bundle)) is None:
            continue
        found.append((bundle, answer.value))
        if bundle.kind != "translation" or not is_foreign(view.encoding.text, bundle.reads):
            _show_moves_here(bundle, view.encoding.text)
    return found


def needs_order(translator: float, fill_in: float) -> str:
    """Return what the numbers say of a translator beside a fill-in: that it needs order "less", "alike" or "more".

    Args:
        translator, fill_in: the shares of their guesses that move where positions are shuffled.
    """
    if abs(translator - fill_in) < APART:
        return "alike"
    return "less" if translator < fill_in else "more"


def _beside(found: list[tuple[Bundle, OrderEffect]]) -> None:
    """Show all models beside each other, and say what their numbers make of an often printed claim."""
    head = [t(f"positions.beside_{name}") for name in ("model", "task", "kept", "shuffled", "removed", "moved")]
    rows = []
    for bundle, worth in found:
        kept, shuffled, removed, _ = worth.nats.mean(1)
        moved = f"**{100 * worth.moved[1].mean():.1f}**"
        task = t(f"positions.task_{bundle.kind}")
        rows.append((plain(_called(bundle.name)), task, f"{kept:.3f}", f"{shuffled:.3f}", f"{removed:.3f}", moved))
    st.subheader(t("positions.beside"), anchor=False)
    st.markdown(markdown_table(head, rows, right=4))
    moved = {bundle.kind: worth.moved[1].mean() for bundle, worth in reversed(found)}  # of the first of each kind
    if {"translation", "bert"} <= moved.keys():
        said = needs_order(moved["translation"], moved["bert"])
        shares = {kind: f"{100 * moved[kind]:.1f}" for kind in ("translation", "bert")}
        show_prose(joined(t("positions.claim"), t(f"positions.claim_{said}", **shares)))


@one_export
def _show(view: View) -> None:
    """Ask what order is worth to the model, then measure it and every other available model."""
    if view.bundle.kind not in MEASURES:
        offer_model(t("outcome.needs_head", name=plain(view.bundle.name)), tuple(MEASURES))
        return
    options = options_of("positions.accuracy_{}", ("nothing", "some", "much", "gains"))
    question = section("positions", "try_order").format(
        model=plain(view.bundle.name), positions=view.bundle.config.positions, texts=texts_for(view.bundle)
    )
    cover = ask_first(question, options, name="positions_order", about=view.bundle.name)
    with cover.picture():
        say(f"**{t('positions.order_reviews')}**")
        answer = _measured(view.bundle)
    if answer is not None:
        cover.judge(_outcome(answer.value))
    if not cover.open:
        return
    if answer is not None:
        show_prose(section("positions", "order_after"))
    st.subheader(t("positions.order_here"), anchor=False)
    _show_here(view)
    others = _others(view)
    if answer is not None and others:
        _beside([(view.bundle, answer.value), *others])


ORDER = Part("positions", "order", _show)
