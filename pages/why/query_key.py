"""What without Q, K and V, and why not Q = K? The sentence's own vectors, and a head whose keys become its queries."""

import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import GREY, Side, curves
from pages.ui.asking import ask
from pages.ui.boxes import say_number
from pages.ui.number_format import percent, significant
from pages.ui.url import choose, slide
from pages.why.figures import Square
from pages.why.frame import SEED, Desk, Finding, Question, head_of, layer_of
from transformer_core.analysis.why.projections import Tied, Unprojected, tied_query_key, without_projections

AS_THEY_ARE = 1.0  # times the vectors' own length
NONE_LEFT = 0.01


def _at_own_length(found: Unprojected) -> float:
    return float(found.shares[abs(found.reaches - AS_THEY_ARE).argmin()])


def _outcome_of_projections(found: Unprojected) -> str:
    share = _at_own_length(found)
    return "even" if share < 2 * found.even and share < 0.5 else "half" if share < 0.5 else "self"


def _without_projections(desk: Desk) -> Finding:
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
    return Finding(_outcome_of_projections(found), numbers)


PROJECTIONS = Question("projections", ("even", "half", "self"), _without_projections)


def _outcome_of_symmetry(found: Tied) -> str:
    scores, weights = found.scores_asymmetry[-1] < NONE_LEFT, found.weights_asymmetry[-1] < NONE_LEFT
    return "both" if scores and weights else "scores" if scores else "neither"


def _tied(desk: Desk) -> Finding:
    with desk.controls:
        share = float(slide(desk.word("share"), 0.0, 1.0, name="why_symmetry_share", default=0.0, step=0.05))
        layer, head = layer_of(desk.view), head_of(desk.view)
    answer = ask(tied_query_key, **desk.view.asked, layer=layer, head=head, share=share, seed=SEED)
    found = answer.value
    with desk.picture:
        three = [
            Square("scores", desk.word("scores_title"), found.scores, kind="signed"),
            Square("residue", desk.word("residue"), found.residue, kind="signed", role="key"),
            Square("weights", desk.word("weights"), found.weights),
        ]
        version = f"{share}|{layer}.{head}|{desk.view.encoding.text}"
        desk.matrices(three, answer, "matrices", version=version, same_scale=True)
        series = {
            desk.word("of_scores"): found.scores_asymmetry,
            desk.word("of_weights"): found.weights_asymmetry,
            desk.word("chance"): found.chance + 0 * found.shares,
        }
        chart = curves(
            found.shares,
            series,
            across=Side(desk.word("share_axis")),
            up=Side(desk.word("asymmetry"), domain=(0.0, 1.0)),
            at=share,
            hues=(HUES["key"], HUES["weights"], GREY),
            guides={desk.word("chance"): 1.0},
            points=False,
            height=270,
        )
        desk.chart(chart, answer, "curve")
    numbers = {
        "layer": str(layer),
        "head": str(head),
        "own": f"{found.scores_asymmetry[0]:.2f}",
        "low": f"{found.own.min():.2f}",
        "high": f"{found.own.max():.2f}",
        "chance": f"{found.chance:.2f}",
        "tied": significant(float(found.tied.max())),
        "of_weights": f"{found.weights_asymmetry[-1]:.2f}",
    }
    return Finding(_outcome_of_symmetry(found), numbers)


SYMMETRY = Question("symmetry", ("both", "scores", "neither"), _tied)
