"""May K = V? The parameters that it saves, counted, and a short training with and without."""

from pages.figures.charts import HUES
from pages.figures.curves import Side, bars
from pages.ui.asking import ask
from pages.ui.language import language
from pages.ui.number_format import percent
from pages.why.frame import Desk, Finding, Question
from pages.why.trials import clearly, trial, trial_numbers
from transformer_core.analysis.why.projections import parameters_saved, train_shared_values


def _experiment(desk: Desk) -> Finding:
    answer = ask(parameters_saved, bundle=desk.view.bundle)
    saved = answer.value
    with desk.picture:
        chart = bars(
            [desk.word("attention"), desk.word("whole")],
            {
                desk.word("variant_own"): [saved.own, saved.whole_own],
                desk.word("variant_shared"): [saved.shared, saved.whole_shared],
            },
            across="",
            up=Side(desk.word("parameters"), format="~s"),
            hues=(HUES["value"], HUES["key"]),
        )
        desk.chart(chart, answer, "saved")
    found = trial(desk, train_shared_values, ("own", "shared"), language=language())
    if found is None:
        return Finding(None)
    numbers = {
        "saved": f"{saved.own - saved.shared:,}",
        "of_attention": percent(1 - saved.shared / saved.own),
        "of_whole": percent(1 - saved.whole_shared / saved.whole_own),
        **trial_numbers(found, "shared", "own"),
    }
    return Finding(clearly(found, "shared", "own"), numbers)


VALUES = Question("values", ("worse", "same", "better"), _experiment)
