"""What without Q, K and V? The typed sentence's own vectors, multiplied with themselves."""

import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import GREY, Side, curves
from pages.ui.asking import ask
from pages.ui.boxes import say_number
from pages.ui.number_format import percent
from pages.ui.url import choose, slide
from pages.why.figures import Square
from pages.why.frame import Desk, Finding, Question, layer_of
from transformer_core.analysis.why.projections import Unprojected, without_projections

AS_THEY_ARE = 1.0


def _at_own_length(found: Unprojected) -> float:
    return float(found.shares[abs(found.reaches - AS_THEY_ARE).argmin()])


def _outcome(found: Unprojected) -> str:
    share = _at_own_length(found)
    return "even" if share < 2 * found.even and share < 0.5 else "half" if share < 0.5 else "self"


def _experiment(desk: Desk) -> Finding:
    with desk.controls:
        kinds = {name: desk.word(name) for name in ("tokens", "embedded", "read")}
        vectors = choose(desk.word("vectors"), kinds, name="why_projections_vectors", default="tokens")
        reach = slide(
            desk.word("reach"), 0.0, 1.5, name="why_projections_reach", default=0.25, step=0.05, format="%.2f ×"
        )
        layer = layer_of(desk.view)
    answer = ask(without_projections, **desk.view.asked, layer=layer, vectors=vectors, reach=float(reach))
    found = answer.value
    with desk.picture:
        version = f"{vectors}|{reach}|{layer}|{desk.view.encoding.text}"
        pair = [
            Square("without", desk.word("without"), found.weights, role="residual"),
            Square("trained", desk.word("trained", layer=layer), found.trained),
        ]
        desk.matrices(pair, answer, "matrices", version=version)
        left, right = st.columns([3, 2])
        series = {
            desk.word("without"): found.shares,
            desk.word("trained", layer=layer): found.trained_share + 0 * found.shares,
            desk.word("share_even"): found.even + 0 * found.shares,
        }
        with left:
            chart = curves(
                found.reaches,
                series,
                across=Side(desk.word("reach_axis")),
                up=Side(desk.word("share"), domain=(0.0, 1.0), format=".0%"),
                at=float(reach),
                hues=(HUES["residual"], HUES["weights"], GREY),
                guides=dict.fromkeys(list(series)[1:], 1.5),
                points=False,
            )
            desk.chart(chart, answer, "curve")
        say_number(desk.word("share_now", reach=f"{reach:.2f}"), percent(found.share), at=right)
        say_number(desk.word("share_trained", layer=layer), percent(found.trained_share), at=right)
        say_number(desk.word("share_even"), percent(found.even), at=right)
    numbers = {
        "share": percent(_at_own_length(found)),
        "trained": percent(found.trained_share),
        "even": percent(found.even),
        "reach": f"{reach:.2f}",
        "now": percent(found.share),
        "won": percent(found.won),
        "trained_won": percent(found.trained_won),
        "layer": str(layer),
        "highest": percent(float(found.trained_shares.max())),
    }
    return Finding(_outcome(found), numbers)


PROJECTIONS = Question("projections", ("even", "half", "self"), _experiment)
