"""What without Q, K and V, and why not Q = K? The sentence's own vectors, and a head whose keys become its queries."""

import math

import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import GREY, Side, curves
from pages.figures.matrix import Panel, Scale
from pages.kit.asking import Answer, ask
from pages.kit.controls import Choice, Slider, Values
from pages.kit.experiment import options_of, say_number
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.number_format import percent, significant
from pages.language import t
from pages.why.frame import HEAD, LAYER, SEED, Desk, Finding, drawing_of, question, squares_of
from transformer_core.analysis.why.projections import Tied, Unprojected, tied_query_key, without_projections

AS_THEY_ARE = 1.0  # times the vectors' own length
NONE_LEFT = 0.01


def _vectors(view: View) -> dict[str, str]:
    """Return the vectors that a model has, each with its name; rows that it does not scale are its embeddings."""
    config = view.bundle.config
    names = options_of("why.projections.{}", ("rows", "tokens", "embedded", "read"))
    if config.scale_embeddings:
        return names | {"tokens": t("why.projections.scaled", scale=f"{math.sqrt(config.d_model):.2f}")}
    return {name: words for name, words in names.items() if name != "rows"}


VECTORS = Choice("why_projections_vectors", _vectors, label="why.projections.vectors", default="tokens")
REACH = Slider(
    "why_projections_reach", 0.0, 1.5, 0.25, step=0.05, kind=float, label="why.projections.reach", format="%.2f ×"
)
QUERIES = Choice("why_symmetry_queries", ("all", "half"), label="why.symmetry.queries", words="why.symmetry.queries_{}")
SHARE = Slider("why_symmetry_share", 0.0, 1.0, 0.0, step=0.05, kind=float, label="why.symmetry.share")


def _at_own_length(found: Unprojected) -> float:
    return float(found.shares[abs(found.reaches - AS_THEY_ARE).argmin()])


def _outcome_of_projections(found: Unprojected) -> str:
    share = _at_own_length(found)
    return "even" if share < 2 * found.even and share < 0.5 else "half" if share < 0.5 else "self"


def _unprojected(view: View, values: Values) -> Live:
    """Return the weights without projections beside the trained ones, and the share of a word's own over the reach."""
    layer, reach, vectors = values[LAYER], values[REACH], values[VECTORS]
    answer = ask(without_projections, prompt=view.prompt, layer=layer, vectors=vectors, reach=reach)
    found, word = answer.value, "why.projections."
    without, trained = t(f"{word}without"), t(f"{word}trained", layer=layer)
    share = Scale.of("probability")
    pair = [Panel("without", without, found.weights, share, role="residual")]
    pair.append(Panel("trained", trained, found.trained, share))
    version = f"{vectors}|{reach}|{layer}|{view.encoding.text}"
    series = {
        without: found.shares,
        trained: found.trained_share + 0 * found.shares,
        t(f"{word}share_even"): found.even + 0 * found.shares,
    }
    chart = curves(
        found.reaches,
        series,
        across=Side(t(f"{word}reach_axis")),
        up=Side(t(f"{word}share"), domain=(0.0, 1.0), format=".0%"),
        at=reach,
        hues=(HUES["residual"], HUES["weights"], GREY),
        guides=dict.fromkeys(list(series)[1:], 1.5),
        points=False,
    )
    return Live(
        (squares_of("projections", view, pair, answer, "matrices", version=version),),
        drawings=(drawing_of("projections", chart, answer, "curve"),),
    )


def _projections(desk: Desk) -> Finding:
    with desk.controls:
        vectors, reach, layer = VECTORS.show(desk.view), REACH.show(), LAYER.show(desk.view)
    live = PROJECTIONS.live(desk.view)
    answer: Answer[Unprojected] = live.drawings[0].answer
    found = answer.value
    with desk.picture:
        desk.matrices_of(live)
        left, right = st.columns([3, 2])
        with left:
            desk.drawing(live.drawings[0], "curve")
        PROJECTIONS.follow(desk.view)
        say_number(desk.word("share_now", reach=f"{reach:.2f}"), percent(found.share), at=right)
        say_number(desk.word("share_trained", layer=layer), percent(found.trained_share), at=right)
        say_number(desk.word("share_even"), percent(found.even), at=right)
    numbers = {
        "vectors": _vectors(desk.view)[vectors],
        "norm": significant(found.norm, 3),
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


PROJECTIONS = question(
    "projections", ("even", "half", "self"), _projections, _unprojected, (VECTORS, REACH, LAYER), group="projections"
)


def _outcome_of_symmetry(found: Tied) -> str:
    scores, weights = found.scores_asymmetry[-1] < NONE_LEFT, found.weights_asymmetry[-1] < NONE_LEFT
    return "both" if scores and weights else "scores" if scores else "neither"


def _tied(view: View, values: Values) -> Live:
    """Return scores, what is not symmetric in them, and weights, and both asymmetries over the share.

    A query's row asks nothing of the other queries. Where half of the tokens ask, what is not symmetric is left out: it
    needs a square.
    """
    layer, head, share = values[LAYER], values[HEAD], values[SHARE]
    answer = ask(tied_query_key, prompt=view.prompt, layer=layer, head=head, share=share, seed=SEED)
    found, word = answer.value, "why.symmetry."
    everybody = values[QUERIES] == "all"
    asking = len(found.scores) if everybody else (len(found.scores) + 1) // 2  # tokens, from the first
    scores = found.scores[:asking]
    signed = Scale.of("signed", *((scores, found.residue) if everybody else (scores,)))
    shown = [Panel("scores", t(f"{word}scores_title"), scores, signed)]
    shown += [Panel("residue", t(f"{word}residue"), found.residue, signed, role="key")] if everybody else []
    shown.append(Panel("weights", t(f"{word}weights"), found.weights[:asking], Scale.of("probability")))
    version = f"{share}|{layer}.{head}|{asking}|{view.encoding.text}"
    chance = t(f"{word}chance")
    chart = curves(
        found.shares,
        {
            t(f"{word}of_scores"): found.scores_asymmetry,
            t(f"{word}of_weights"): found.weights_asymmetry,
            chance: found.chance + 0 * found.shares,
        },
        across=Side(t(f"{word}share_axis")),
        up=Side(t(f"{word}asymmetry"), domain=(0.0, 1.0)),
        at=share,
        hues=(HUES["key"], HUES["weights"], GREY),
        guides={chance: 1.0},
        points=False,
        height=270,
    )
    note = "matrices" if everybody else "half"
    return Live(
        (squares_of("symmetry", view, shown, answer, "matrices", note=note, version=version),),
        drawings=(drawing_of("symmetry", chart, answer, "curve"),),
    )


def _symmetry(desk: Desk) -> Finding:
    with desk.controls:
        SHARE.show()
        QUERIES.show()
        layer, head = LAYER.show(desk.view), HEAD.show(desk.view)
    live = SYMMETRY.live(desk.view)
    answer: Answer[Tied] = live.drawings[0].answer
    found = answer.value
    with desk.picture:
        desk.matrices_of(live)
        desk.drawing(live.drawings[0], "curve")
        SYMMETRY.follow(desk.view)
    numbers = {
        "layer": str(layer),
        "head": str(head),
        "own": f"{found.scores_asymmetry[0]:.2f}",
        "tokens": str(len(found.scores)),
        "low": f"{found.own.min():.2f}",
        "high": f"{found.own.max():.2f}",
        "chance": f"{found.chance:.2f}",
        "tied": significant(float(found.tied.max())),
        "of_weights": f"{found.weights_asymmetry[-1]:.2f}",
    }
    return Finding(_outcome_of_symmetry(found), numbers)


SYMMETRY = question(
    "symmetry", ("both", "scores", "neither"), _symmetry, _tied, (SHARE, QUERIES, LAYER, HEAD), group="projections"
)
