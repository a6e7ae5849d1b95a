"""Why not Q = K? A trained head whose keys are moved towards its queries."""

from pages.figures.charts import HUES
from pages.figures.curves import GREY, Side, curves
from pages.ui.asking import ask
from pages.ui.number_format import significant
from pages.ui.url import slide
from pages.why.figures import Square
from pages.why.frame import SEED, Desk, Finding, Question, head_of, layer_of
from transformer_core.analysis.why.projections import Tied, tied_query_key

NONE_LEFT = 0.01


def _outcome(found: Tied) -> str:
    scores, weights = found.scores_asymmetry[-1] < NONE_LEFT, found.weights_asymmetry[-1] < NONE_LEFT
    return "both" if scores and weights else "scores" if scores else "neither"


def _experiment(desk: Desk) -> Finding:
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
    return Finding(_outcome(found), numbers)


SYMMETRY = Question("symmetry", ("both", "scores", "neither"), _experiment)
