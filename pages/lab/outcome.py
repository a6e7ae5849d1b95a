"""What the Lab measures: one answer of the model, as it is, under changes, and under random changes of equal size."""

from typing import Any

import numpy as np
import streamlit as st

from pages.figures.curves import Side, bars
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Control, Text, Values
from pages.kit.experiment import experiment, hidden, say
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.number_format import minus, percent, significant
from pages.kit.refusals import in_own_words
from pages.kit.url import set_choice
from pages.kit.verdict import Number, Verdict, class_word, show_number, show_verdict, verdict_of
from pages.kit.waiting import awaited_or_why
from pages.lab.log import offer_row
from pages.language import joined, plain, t
from transformer_core.analysis.lab.cases import answer_of
from transformer_core.analysis.lab.changes import Code
from transformer_core.analysis.lab.intervention import Effect, SetEffect, intervene, intervene_on_set
from transformer_core.analysis.lab.text_sets import Among, knows_answers

N_CONTROLS = 19  # so that a change like any of them lies outside their range once in ten times
OWN, TYPED = "own", "typed"
LEAST_SHOWN, SMALL = 5e-4, 0.1  # nats
MOST_OFFERED = 40  # tokens
MOST_AT_ONCE = 12_000_000  # parameters: a larger model's answer is waited for


def answer_word(view: View, answer: int) -> str:
    """Return what people call a class or a token that is asked for."""
    label = view.bundle.reader.label(answer)
    return class_word(label) if view.bundle.reader.asks == "class" else f"“{label}”"


def can_answer(view: View) -> bool:
    """Tell whether the model answers anything about the text; where not, say why."""
    if view.bundle.reader.asks is None:
        st.info(t("lab.needs_answer", name=plain(view.bundle.name)), icon=":material/info:")
        return False
    try:
        untouched(view)
    except ValueError as error:
        if view.bundle.reader.asks == "masked" and view.bundle.tokenizer.mask_id is not None:
            _offer_to_hide(view)
        else:
            st.info(t("lab.no_answer", why=in_own_words(str(error))), icon=":material/info:")
        return False
    return True


def _offer_to_hide(view: View) -> None:
    """Offer each token of a text without a [MASK] to be hidden."""
    tokenizer, encoding = view.bundle.tokenizer, view.encoding
    assert tokenizer.mask_id is not None
    st.info(t("lab.no_answer", why=t("lab.hide_one")), icon=":material/info:")
    with st.container(horizontal=True, gap="small"):
        for place in encoding.own[:MOST_OFFERED]:
            start, end = encoding.offsets[place]
            text = encoding.text[:start] + tokenizer.token_of(tokenizer.mask_id) + encoding.text[end:]
            label = plain(encoding.labels[place])
            st.button(label, key=f"lab_hide_{place}", on_click=set_choice, args=("text", text))


def untouched(view: View) -> Answer[Effect]:
    """Return what the model answers as it is, with what else it finds likely."""
    return ask_once(intervene, prompt=view.prompt, changes=(), answer=None, controls=0)


def _answers(view: View) -> dict[str, str]:
    """Return what can be measured: what the model itself finds likeliest, or one of the classes or likely tokens."""
    if view.bundle.reader.asks == "words":
        return {OWN: OWN}  # or the text in the other control
    found = untouched(view).value
    own = {OWN: t("lab.own", answer=answer_word(view, found.answer))}
    typed = {} if view.bundle.reader.asks == "class" else {TYPED: t("lab.typed")}
    return own | {str(one): answer_word(view, one) for one in found.outcomes.tolist()} | typed


def _token(view: View, text: str) -> int | None:
    try:
        return answer_of(view.bundle, text) if text else None
    except ValueError as error:
        raise ValueError(in_own_words(str(error))) from error


ANSWER = Choice[str]("lab_answer", _answers, label="lab.measured", form="list")
TOKEN = Text[int | None]("lab_typed", "", parse=_token, label="lab.typed_token", most=60)
TARGET = Text[str]("lab_target", "", label="lab.target")
ANSWERS = (ANSWER, TOKEN, TARGET)


def show_answer(view: View) -> None:
    """Show what chooses the answer that is measured: of a translation a text."""
    if view.bundle.reader.asks == "words":
        TARGET.show(view)
    elif ANSWER.show(view) == TYPED:
        TOKEN.show(view)


def measured(view: View, values: Values | None = None) -> int | str | None:
    """Return what is measured; None for what the model itself finds likeliest.

    Args:
        values: what the controls of a part hold, by default what they hold now.
    """

    def held(control: Control[Any]) -> Any:
        return control.read(view) if values is None else values[control]

    if view.bundle.reader.asks == "words":
        return held(TARGET) or None
    answer = held(ANSWER)
    return held(TOKEN) if answer == TYPED else None if answer == OWN else int(answer)


def ask_effect(
    view: View, changes: tuple[Code, ...], answer: int | str | None, *, controls: int = N_CONTROLS
) -> Answer[Effect]:
    """Return what changes do to an answer."""
    return ask_once(intervene, prompt=view.prompt, changes=changes, answer=answer, controls=controls)


def _verdict(view: View, found: Effect, which: int) -> Verdict | None:
    if not found.outcomes.size:
        return None
    shares = found.probabilities[which].astype(float).tolist()
    if view.bundle.reader.asks == "class":
        return verdict_of(view.bundle.labels or [f"#{one}" for one in found.outcomes.tolist()], shares)
    order = np.argsort(-found.probabilities[0])[:5].tolist()
    winner = int(np.argmax(found.probabilities[which]))
    order = order if winner in order else [*order[:-1], winner]
    parts = [shares[place] for place in order]
    names = [answer_word(view, int(found.outcomes[place])) for place in order]
    return verdict_of([*names, t("outcome.others")], [*parts, max(0.0, 1 - sum(parts))], winner=order.index(winner))


def _of_controls(found: Effect) -> Number:
    """Return the least and the greatest that random changes of equal size do to ln p, in nats."""
    count = len(found.controls)
    if not count:
        return Number(t("lab.random", count=0), "–", t("lab.random_none"))
    moved = found.controls - found.before
    ends = f"{signed_nats(float(moved.min()))} … {signed_nats(float(moved.max()))}"
    return Number(
        t("lab.random", count=count), ends, t("lab.random_help", count=count, outside=percent(2 / (count + 1)))
    )


def signed_nats(nats: float) -> str:
    """Return a change with as many digits as its size calls for, a change of nothing as 0."""
    return "0" if abs(nats) < LEAST_SHOWN else minus(f"{nats:+.3f}" if abs(nats) < SMALL else f"{nats:+.2f}")


def live_outcome(view: View, found: Effect) -> Live:
    """Return the verdicts and numbers of what changes do."""
    verdicts = {"lab_before": _verdict(view, found, 0), "lab_after": _verdict(view, found, 1)}
    name = t("lab.translation") if view.bundle.reader.asks == "words" else answer_word(view, found.answer)
    numbers = {
        "lab_ln": Number(
            t("lab.ln_p", answer=name), minus(f"{found.before:.2f} → {found.after:.2f}"), t("lab.ln_p_help")
        ),
        "lab_change": Number(t("lab.change"), signed_nats(found.after - found.before), t("lab.change_help")),
        "lab_random": _of_controls(found),
    }
    return Live(verdicts=verdicts, numbers=numbers)


def show_effect(view: View, answer: Answer[Effect], *, what: str, part: str) -> None:
    """Show the answer before and after changes, and what random ones of equal size do; offer to log it.

    Args:
        what: was changed, in words.
        part: of the page.
    """
    found = answer.value
    live = live_outcome(view, found)
    with st.container(key=f"stays_{part}"):
        places = st.columns([1.7, 1.7, 1.5, 0.9, 1.9], gap="medium")
    before_place, after_place, ln_place, change_place, random_place = places
    if live.verdicts["lab_before"] is None:
        with before_place:
            st.caption(t("lab.words_asked", count=found.words.shape[1]))
        with after_place:
            st.caption(t("lab.flips" if found.flips else "lab.stays"))
    else:
        for place, name in ((before_place, "before"), (after_place, "after")):
            with place:
                st.caption(hidden(t(f"lab.{name}")))
                show_verdict(live.verdicts[f"lab_{name}"], place=f"lab_{name}")
    for place, name in ((ln_place, "lab_ln"), (change_place, "lab_change"), (random_place, "lab_random")):
        with place:
            show_number(name, live.numbers[name])
    offer_row(view, answer, what=what, part=part)


def show_words(view: View, answer: Answer[Effect]) -> None:
    """Show the probability of every word of a translation before and after."""
    found = answer.value
    if view.bundle.reader.asks != "words":
        return
    names = [f"{place}  {label}" for place, label in enumerate(found.labels, start=1)]
    series = {t("lab.before"): np.exp(found.words[0]), t("lab.after"): np.exp(found.words[1])}
    up = Side(t("lab.word_chance"), domain=(0.0, 1.0), format=".0%")
    chart = bars(names, series, across=t("lab.word"), up=up, height=280)
    show_chart(chart, answer, key="lab_words", label=t("lab.word_chance"))


@experiment("lab_on_set", "lab.on_set", icon=":material/dataset:")
def show_on_set(view: View, changes: tuple[Code, ...], among: Among, *, key: str) -> None:
    """Show, in a box, what changes do on a set of texts, as show_set returns it."""
    if not changes or among is None:
        st.caption(t("lab.nothing_changed" if among is not None else "lab.set_first"))
        return
    words, asked = t("lab.reading_set"), {"bundle": view.bundle, "changes": changes, "among": among}
    answer = awaited_or_why(intervene_on_set, words, key=f"set_{key}", height=110, **asked)
    if answer is not None:
        found: SetEffect = answer.value
        same = "" if knows_answers(view.bundle, among) else "same_"
        before, after, random = st.columns(3)
        for place, column, name in ((0, before, "before"), (1, after, "after")):
            with column:
                st.metric(t(f"lab.set_{same}{name}"), percent(float(found.accuracy[place])))
                low, high = (percent(float(end)) for end in found.bounds[place])
                st.caption(t("lab.set_mean", low=low, high=high, loss=f"{-found.mean[place]:.3f}"))
        with random:
            drawn = found.accuracy[2:]
            ends = f"{percent(float(drawn.min()))} … {percent(float(drawn.max()))}" if drawn.size else "–"
            st.metric(t("lab.set_by_chance", count=len(drawn)), ends)
            st.caption(
                t("lab.set_random", loss=f"{-found.mean[2:].mean():.3f}") if drawn.size else t("lab.random_none")
            )
        say(_difference(found))
        worse = int((found.change < 0).sum())
        given = len(among) if isinstance(among, tuple) else 0
        note = "given" if given else "own" if among == "held_out" else view.bundle.kind
        note = "verdicts" if note == "classifier" and same else note
        say(t(f"lab.set_note_{note}", texts=len(found.change), worse=worse, given=given), small=True)


def _difference(found: SetEffect) -> str:
    """Return in words whether the answers before and after can be told apart."""
    difference = found.difference
    case = ("higher" if difference.moved > 0 else "lower") if difference.is_significant else "not_apart"
    moved, low, high = (f"{100 * share:+.1f}" for share in (difference.moved, difference.low, difference.high))
    counts = {"texts": len(found.change), "better": difference.better, "worse": difference.worse}
    said = t(f"lab.set_{case}", moved=moved, low=low, high=high, chance=significant(difference.chance), **counts)
    loss = found.loss
    numbers = {"moved": signed_nats(loss.moved), "low": signed_nats(loss.low), "high": signed_nats(loss.high)}
    return joined(said, t("lab.set_loss", **numbers))
