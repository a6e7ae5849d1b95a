"""The page's part on the next token: the text's surprisal, and the distribution at the chosen place."""

import streamlit as st

from pages.figures.likeliest import expected_bars
from pages.gpt.text import BACK, TOP, go_to, measured_text, strip_of
from pages.kit.asking import Answer, ask
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Values
from pages.kit.experiment import ask_first, experiment
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.language import joined, plain, section, t
from pages.room import Part
from transformer_core.analysis.gpt.next_token import Expected, Surprisals, expected

GUESSES = (0, 1, 3, 6)
AROUND = 160


def _picture(view: View, values: Values) -> Live:
    """Return the text with its surprisal, and the distribution at the chosen place."""
    place = len(view.encoding) + values[BACK]
    answer = ask(expected, prompt=view.prompt, place=place, top=TOP)
    return Live(drawings=(strip_of(measured_text(view), place), _bars(answer, key="gpt_expected")))


def _show(view: View) -> None:
    """Show the text with its surprisal, the distribution at one place, and a guess to compare with the model's."""
    strip_place = st.container()
    place = len(view.encoding) + BACK.show(view)
    strip, bars = NEXT.live(view).drawings
    with strip_place:
        show_drawing(strip, on_place=lambda where: go_to(where, view))
    bars_place, numbers = st.columns([3, 2], gap="large")
    with bars_place:
        show_drawing(bars)
    NEXT.follow(view)
    with numbers:
        _numbers(view, bars.answer.value, strip.answer.value, place)
    _guess(view)


def expected_drawing(answer: Answer[Expected], *, key: str, stem: str, label: str) -> Drawing:
    """Draw the probabilities of the likeliest tokens at a place, and of the one that the text has there.

    Args:
        key, stem, label: as of Drawing.
    """
    found = answer.value
    inside = found.ids.tolist().index(found.came_id) if found.came_id in found.ids.tolist() else None
    outside = (found.came, found.came_probability, found.came_rank) if found.came_id >= 0 and inside is None else None
    words = {
        "probability": t("gpt.probability"),
        "expected": t("gpt.bar_expected"),
        "came": t("gpt.bar_came"),
        "others": t("gpt.bar_others"),
        "rest": t("gpt.rest", count=f"{found.n_rest - (outside is not None):,}"),
    }
    chart = expected_bars(found.labels, found.probabilities, found.rest, words, came=outside, inside=inside)
    return Drawing(key, chart, answer, stem, label)


def _bars(answer: Answer[Expected], *, key: str) -> Drawing:
    return expected_drawing(answer, key=key, stem="gpt_next_token", label=t("gpt.expected_label"))


def _numbers(view: View, found: Expected, text: Surprisals, place: int) -> None:
    read = view.encoding.labels[place - 1]
    st.subheader(t("gpt.after", place=place, token=plain(read)), anchor=False)
    entropy, alike = st.columns(2)
    entropy.metric(t("gpt.entropy"), t("gpt.in_bits", bits=f"{found.entropy:.2f}"))
    alike.metric(t("gpt.alike"), f"{2**found.entropy:,.1f}", help=t("gpt.alike_help"))
    st.caption(t("gpt.entropy_note", greatest=f"{found.greatest:.2f}", count=f"{len(found.ids) + found.n_rest:,}"))
    if found.came_id >= 0:
        st.markdown(
            t(
                "gpt.came_measured",
                token=plain(found.came),
                chance=f"{found.came_probability:.2%}",
                rank=f"{found.came_rank:,}",
                bits=f"{found.came_bits:.2f}",
            )
        )
    known = len(text.labels) - 1
    if known:
        st.markdown(
            t("gpt.text_measured", bits=f"{text.mean_bits:.2f}", foreseen=text.foreseen, count=known),
        )


@experiment("gpt_guess_open", "gpt.try_guess")
def _guess(view: View) -> None:
    half = (len(view.encoding) + 1) // 2
    end = view.encoding.offsets[half - 1][1]
    begun = view.encoding.text[max(0, end - AROUND) : end]
    answer = ask(expected, prompt=view.prompt, place=half, top=TOP)
    found = answer.value
    picked = sorted((found.labels[k], str(found.ids[k])) for k in GUESSES if k < len(found.ids))
    options = {id_: plain(label) for label, id_ in picked}
    question = t("gpt.guess", begun=plain(begun).replace("\n", " ⏎ "))
    cover = ask_first(question, options, name="gpt_next", about=f"{view.bundle.name} {begun}")
    measured = t(
        "gpt.guess_measured",
        chance=f"{_chance(found, cover.guess or str(found.ids[0])):.1%}",
        entropy=f"{found.entropy:.2f}",
    )
    came = t("gpt.guess_end")
    if found.came:
        came = t("gpt.guess_came", came=plain(found.came), rank=f"{found.came_rank:,}")
    cover.judge(str(found.ids[0]), joined(measured, came))
    with cover.picture():
        show_drawing(_bars(answer, key="gpt_guessed"))
    show_prose(section("gpt", "next_after"))


def _chance(found: Expected, guess: str) -> float:
    return float(found.probabilities[found.ids.tolist().index(int(guess))])


NEXT = Part("gpt", "next", _show, _picture, (BACK,))
