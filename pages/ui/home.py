"""Home's experiment: which word the verdict rests on, guessed first and then measured by hiding each.

Read next: attention.py.
"""

import numpy as np
import streamlit as st

from pages.figures.attention_charts import hidden_bars
from pages.ui.asking import ask_once
from pages.ui.boxes import judged, lazy_box, predict
from pages.ui.charts import show_chart
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.verdict import chart_word, concludes
from transformer_core.analysis.attention.occlusion import occlusion, substitutes


def some_places(change: np.ndarray) -> list[int]:
    """Return up to four places to choose from, in the order of the text; the one that changes most is among them.

    Shapes:
        change: (pos,), not a number where nothing was hidden
    """
    order = [int(place) for place in np.argsort(-np.abs(change), kind="stable") if np.isfinite(change[place])]
    return sorted({order[len(order) * part // 4] for part in range(4)}) if order else []


def word_experiment(view: View) -> None:
    """Ask which word matters most, then hide every word in turn and show what the verdict does."""
    box = lazy_box(t("home.try"), icon=":material/science:", key="home_try")
    if box is None:
        return
    labels, text = view.encoding.labels, view.encoding.text
    with box:
        if not concludes(view, key="home_concludes"):
            return
        way = substitutes(view.bundle)[0]
        answer = ask_once(occlusion, **view.asked, substitute=way)
        found = answer.value
        places = some_places(found.change)
        if len(places) < 2:
            st.info(t("home.too_few"), icon=":material/info:")
            return
        options = {str(place): plain(labels[place]) for place in places}
        guess = predict(
            section("home", "try_cut" if way == "cut" else "try"), options, about=f"home {view.bundle.name} {text}"
        )
        if guess is None:
            return
        most = max(places, key=lambda place: abs(found.change[place]))
        winner = chart_word(view, found.winner)
        moved = t(
            "home.moved",
            word=options[str(most)],
            label=plain(winner),
            points=f"{100 * found.change[most]:+.1f}",
        )
        st.markdown(f"{judged(guess, str(most), options)} {moved}")
        said = strings("attention_flow") | {"points": t("attention.points", label=winner)}
        chart = hidden_bars(found.change, labels, said)
        show_chart(chart, answer, key="home_words", stem="verdict_without_each_word", label=t("home.try"))
