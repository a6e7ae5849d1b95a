"""The page's part on the last sum: the products of the class map that add up to the logit."""

import streamlit as st

from pages.encoder.figures import product_bars, running_line
from pages.encoder.names import class_name
from pages.encoder.padding import OPEN, PADS, drawn_means, try_padding
from pages.kit.asking import Answer, ask
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Choice, Values
from pages.kit.experiment import ask_first, fragment, options_of, say
from pages.kit.header import View
from pages.kit.live import Live, show_formula
from pages.kit.number_format import markdown_table, significant_in_tex
from pages.language import section, strings, t
from pages.room import Part
from transformer_core.analysis.encoder.logit_sum import LogitSum, logit_sum

MARGIN = "margin"


def _sums(view: View) -> dict[str, str]:
    """Return what the sum can be of: the margin, or the number of a class."""
    classes = {str(number): class_name(view, number) for number in range(len(view.bundle.labels))}
    return {MARGIN: t("encoder.margin")} | classes


OF = Choice(
    "encoder_of",
    _sums,
    label="encoder.sum_of",
    kind=lambda option: None if option == MARGIN else int(option),
    most_buttons=5,
)
NAMED = 6
FEW, SOME = 0.05, 0.25
FORMULA = (
    r"z={{\textstyle\sum_k}}\,w_k s_k+b={above}\,{below}\,{bias}={total}"
    r"\qquad \text{{{model}}}\ {logit}\qquad \text{{{apart}}}\ {difference}"
)


@fragment
def _show(view: View) -> None:
    """Show the sum in numbers, every product as a bar, and, after a prediction, how the sum grows."""
    OF.show(view)
    live = SUM.live(view)
    bars, growth, *_ = live.drawings
    answer: Answer[LogitSum] = bars.answer
    found = answer.value
    show_formula("encoder_sum", live.formulas["encoder_sum"])
    SUM.follow(view)
    bars_place, growth_place = st.columns(2, gap="large")
    with bars_place:
        show_drawing(bars)
        st.caption(t("encoder.sum_note", name=_name_of(view, found), winner=class_name(view, found.winner)))
    with growth_place:
        _show_growth(view, growth)
        st.caption(t("encoder.largest", count=NAMED))
        st.markdown(_table(found))
    try_padding(view)


def _picture(view: View, values: Values) -> Live:
    """Return the sum in numbers, every product as a bar, and how the sum grows."""
    answer = ask(logit_sum, prompt=view.prompt, target=values[OF])
    found = answer.value
    words = strings("encoder")
    bars = product_bars(found.products, found.bias, words | _sides(view, found))
    settled = words | {"settled_at": t("encoder.settled_after", count=found.needed)}
    growth = running_line(found.running, found.needed, settled)
    label = t("encoder.products_label", name=_name_of(view, found))
    drawings = (
        Drawing("encoder_products", bars, answer, "encoder_products", label),
        Drawing("encoder_running", growth, answer, "encoder_running_sum", t("encoder.running_label")),
    )
    if values[OPEN] and view.bundle.config.pad_id is not None:
        drawings += (drawn_means(view, values[PADS]),)
    return Live(drawings=drawings, formulas={"encoder_sum": _formula(found)})


def _formula(found: LogitSum) -> str:
    return FORMULA.format(
        above=f"{found.above:+.4f}",
        below=f"{found.below:+.4f}",
        bias=f"{found.bias:+.4f}",
        total=f"{found.total:+.4f}",
        logit=f"{found.logit:+.4f}",
        difference=significant_in_tex(found.difference, 1, sign=True),
        model=t("encoder.model_says"),
        apart=t("encoder.apart"),
    )


def _name_of(view: View, found: LogitSum) -> str:
    if found.target is not None:
        return t("encoder.logit_of", label=class_name(view, found.target))
    return t("encoder.margin_of", winner=class_name(view, found.winner), rival=class_name(view, found.rival))


def _sides(view: View, found: LogitSum) -> dict[str, str]:
    """Return the legend's texts for products above 0 and below."""
    if found.target is not None:
        label = class_name(view, found.target)
        return {"above": t("encoder.above_raises", label=label), "below": t("encoder.below_lowers")}
    winner, rival = class_name(view, found.winner), class_name(view, found.rival)
    return {"above": t("encoder.above_for", label=winner), "below": t("encoder.below_for", label=rival)}


def _table(found: LogitSum) -> str:
    head = [t("encoder.coordinate"), r"$s_k$", r"$w_k$", r"$w_k s_k$", t("encoder.sum")]
    rows = [["b", "", "", "", f"{found.bias:+.4f}"]]
    for place, index in enumerate(found.order[:NAMED].tolist(), start=1):
        numbers = (found.vector[index], found.weight[index], found.products[index], found.running[place])
        rows.append([str(index), *(f"{number:+.4f}" for number in numbers)])
    return markdown_table(head, rows, right=len(head))


def _show_growth(view: View, growth: Drawing) -> None:
    found: LogitSum = growth.answer.value
    size = len(found.products)
    few, some = max(1, round(FEW * size)), max(2, round(SOME * size))
    options = options_of("encoder.needed_{}", ("few", "some", "many"), few=few, some=some)
    question = section("encoder", "try_sum").format(size=size)
    about = f"{view.bundle.name} {found.target} {view.encoding.text}"
    cover = ask_first(question, options, name="encoder_sum", about=about)
    outcome = "few" if found.needed <= few else "some" if found.needed <= some else "many"
    cover.judge(outcome)
    with cover.picture():
        show_drawing(growth)
        say(t("encoder.needed_measured", needed=found.needed, size=size))


SUM = Part("encoder", "sum", _show, _picture, (OF, OPEN, PADS))
