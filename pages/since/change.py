"""The page's part on one change: its diagram, both equations, both numbers on the text, its costs and its worth."""

from typing import Any

import streamlit as st

from pages.home.figures import Architecture, architecture_svg
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_drawing
from pages.kit.component import registered
from pages.kit.controls import Choice, layer_control, show_in_columns, token_control
from pages.kit.experiment import ask_first, figure, options_of, say
from pages.kit.exports import code_files, offer_files
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.navigation import choice_of_part, open_page
from pages.kit.number_format import in_bytes, markdown_table, significant
from pages.kit.runs import begin_run, follow, refuse_read_only
from pages.kit.url import keep
from pages.language import plain, section, strings, t
from pages.positions.schemes import model_with_learned_table
from pages.room import Part
from pages.since.ladder import drawing_of, how_measured
from transformer_core.analysis.gpt.ladder import NAMES, RUNGS, Ladder, config_at, ladder
from transformer_core.analysis.gpt.rungs import WAYS, BothWays, both_ways, grouped_heads
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.presets import CHARACTERS
from transformer_core.training.runs.settings import change
from transformer_core.training.spec import RunSpec

EQUATIONS = {  # below the rung, and on it
    "pre": (r"x' = \mathrm{Norm}\big(x + F(x)\big)", r"x' = x + F\big(\mathrm{Norm}(x)\big)"),
    "learned": (r"P_{p,2i} = \sin\!\big(p / 10000^{2i/d}\big)", r"P_p = \text{row } p \text{ of a trained matrix}"),
    "rotary": (
        r"s_{ij} = \tfrac{1}{\sqrt{d_k}}\,W_Q(x_i + P_i)\cdot W_K(x_j + P_j)",
        r"s_{ij} = \tfrac{1}{\sqrt{d_k}}\,(R_i\,W_Q x_i)\cdot(R_j\,W_K x_j) = "
        r"\tfrac{1}{\sqrt{d_k}}\,(W_Q x_i)\cdot R_{j-i}\,W_K x_j",
    ),
    "rms_norm": (
        r"y = g \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + b",
        r"y = g \odot \frac{x}{\sqrt{\tfrac1d \sum_k x_k^2 + \epsilon}}",
    ),
    "gelu": (r"\max(0,\; xW_1)\,W_2", r"\mathrm{GELU}(xW_1)\,W_2,\quad \mathrm{GELU}(z) = z\,\Phi(z)"),
    "swiglu": (
        r"\mathrm{GELU}(xW_1)\,W_2",
        r"\big(\mathrm{SiLU}(xW_g) \odot xW_1\big)\,W_2,\quad \mathrm{SiLU}(z) = \frac{z}{1 + e^{-z}}",
    ),
    "one_head": (r"K_h = xW_K^{(h)},\quad h = 1 \dots H", r"K_h = xW_K \quad \text{for every } h"),
    "grouped": (r"K_h = xW_K \quad \text{for every } h", r"K_h = xW_K^{(\lceil h\,G/H \rceil)},\quad 1 < G < H"),
    "unbiased": (r"y = xW + b", r"y = xW"),
    "mixture": (
        r"y = \mathrm{FFN}(x)",
        r"y = \sum_{e \,\in\, \mathrm{top}_2(p)} \frac{p_e}{\sum_{e'} p_{e'}}\,\mathrm{FFN}_e(x),\quad "
        r"p = \mathrm{softmax}(xW_r)",
    ),
}
CHANGED = {  # parts of the diagram
    "pre": ("norm",),
    "learned": ("positions",),
    "rotary": ("attention",),
    "rms_norm": ("norm",),
    "gelu": ("feed_forward",),
    "swiglu": ("feed_forward",),
    "one_head": ("attention",),
    "grouped": ("attention",),
    "unbiased": ("attention", "feed_forward"),
    "mixture": ("feed_forward",),
}
DEEPER = {  # the page and the part that show it at length
    "pre": ("norm", "orders"),
    "learned": ("positions", "schemes"),
    "rotary": ("positions", "schemes"),
    "rms_norm": ("norm", "vector"),
    "gelu": ("feed_forward", "curves"),
    "swiglu": ("feed_forward", "neurons"),
    "one_head": ("gpt", "cache"),
    "grouped": ("gpt", "cache"),
    "unbiased": ("", ""),
    "mixture": ("feed_forward", "mixture"),
}
TWO_DIGITS, SHARE, BYTES, COUNT = "digits", "share", "bytes", "count"
FORMS = {
    ("gelu", "zeros"): SHARE,
    ("swiglu", "turned"): SHARE,
    ("unbiased", "share"): SHARE,
    ("one_head", "bytes"): BYTES,
    ("grouped", "bytes"): BYTES,
    **dict.fromkeys([("learned", "learned"), ("rotary", "learned"), ("unbiased", "count")], COUNT),
    **dict.fromkeys([("mixture", "read"), ("mixture", "kept")], COUNT),
}
SEED, TWIN_EXAMPLES = 0, 16_000

RUNG = Choice("since_rung", lambda _: options_of("since.name_{}", tuple(WAYS)), label="since.rung", form="steps")
LAYER, TOKEN = layer_control("since.layer"), token_control("since_token", "since.token")


def _written(rung: str, name: str, value: float | None) -> str:
    if value is None:
        return "–"
    form = FORMS.get((rung, name), TWO_DIGITS)
    return {SHARE: f"{value:.1%}", BYTES: in_bytes(value), COUNT: f"{value:,.0f}"}.get(form, significant(value, 3))


def _on_the_text(view: View, rung: str, answer: Answer[BothWays]) -> None:
    """Show both numbers on the text, by the names of what they measure."""
    names = {"heads": view.bundle.config.n_heads, "groups": grouped_heads(view.bundle.config)}
    head = [t("since.on_text"), t("since.below"), t("since.here")]
    rows = [
        [
            t(f"since.{rung}_{one.name}", **names),
            _written(rung, one.name, one.before),
            _written(rung, one.name, one.after),
        ]
        for one in answer.value.measures
    ]
    st.markdown(markdown_table(head, rows, right=2))
    if any(one.before is None or one.after is None for one in answer.value.measures):
        say(t(f"since.none_{rung}"), small=True)


def _costs(found: BothWays) -> None:
    """Show what the ladder's own models take, below the rung and on it."""
    head = [t("since.of_ladder"), t("since.below"), t("since.here")]
    both = (found.below, found.here)
    rows = [
        [t("since.weights"), *(f"{one.weights:,}" for one in both)],
        [t("since.active"), *(f"{one.active:,}" for one in both)],
        [t("since.products"), *(f"{one.products:,}" for one in both)],
        [t("since.cache"), *(in_bytes(one.cache) for one in both)],
    ]
    st.markdown(markdown_table(head, rows, right=2))


def _diagram(view: View, rung: str) -> None:
    """Draw the ladder's model with what changed marked."""
    config = config_at(rung)
    model = Architecture(config, "gpt", min(len(view.encoding), config.max_len))
    svg = architecture_svg(model, strings("diagram"), {}, changed=CHANGED[rung])
    with figure("since_diagram", "since_diagram"):
        registered("architecture")(key="since_diagram", data={"svg": svg}, on_open_change=lambda: None)


def _change_in_words(found: Ladder, rung: str) -> str:
    """Return in words what a rung was worth."""
    place = found.rungs.index(rung)
    worth, low, high = (f"{one[place]:+.4f}" for one in (found.worth, found.low, found.high))
    numbers = {"worth": worth, "low": low, "high": high, "seeds": found.nats.shape[1]}
    return t(f"since.worth_{found.outcome(rung)}", **numbers)


def twins(rung: str) -> tuple[RunSpec, RunSpec]:
    """Return two runs of characters that differ in a rung's change alone, below it and on it."""
    base = CHARACTERS.model
    changed = {name for one in RUNGS for name in one.change if name != "d_ff"}

    def spec(name: str) -> RunSpec:
        config = config_at(name)
        wide = base.d_ff * config.d_ff // config_at("paper").d_ff
        values: dict[str, Any] = {field: getattr(config, field) for field in changed}
        values |= {"d_ff": wide, "n_kv_heads": config.kv_heads}
        return change(CHARACTERS, **values, examples=TWIN_EXAMPLES, seed=SEED)

    below = NAMES[NAMES.index(rung) - 1]
    return spec(below), spec(rung)


def _train_both(rung: str) -> None:
    """Offer to train the twins now, and to see them on Compare."""
    if refuse_read_only() or not st.button(t("since.train"), icon=":material/model_training:", key="since_train"):
        return
    try:
        first, second = (begin_run(spec) for spec in twins(rung))
    except (RunError, ValueError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    follow(first.id)
    follow(second.id, name="other")
    open_page("compare")


def _offer_deeper(page: str, part: str) -> None:
    """Offer the page that shows a change at length."""
    if st.button(t("since.deeper", page=t(f"nav.{page}")), icon=":material/arrow_forward:", key="since_deeper"):
        keep(choice_of_part(page), part, "")
        open_page(page)


def _both_ways(view: View, rung: str) -> None:
    """Show the equations of a change, both numbers on the text, and what the ladder's models cost."""
    source = next(one.source for one in RUNGS if one.name == rung)
    formulas, numbers = st.columns(2, gap="large")
    with formulas:
        show_prose(section("since", f"rung_{rung}"))
        for title, equation in zip((t("since.below"), f"{t('since.here')} ({source})"), EQUATIONS[rung], strict=True):
            st.caption(title)
            st.latex(equation)
    with numbers:
        layer, place = show_in_columns(view, LAYER, TOKEN)
        learned = model_with_learned_table(view) if rung in ("learned", "rotary") else None
        answer = ask_once(both_ways, prompt=view.prompt, rung=rung, layer=layer, place=place, learned=learned)
        _on_the_text(view, rung, answer)
        _costs(answer.value)
        offer_files(lambda: code_files(answer), key="since_numbers", stem=f"since_{rung}", note=t("export.note"))


def _ask_change(rung: str) -> None:
    """Ask what a change was worth, and show what was measured."""
    options = options_of("since.guess_{}", ("better", "within", "worse"))
    cover = ask_first(section("since", "try_worth"), options, name="since_worth", about=rung)
    answer = ask_once(ladder, rungs=(NAMES[NAMES.index(rung) - 1], rung))
    with cover.picture():
        show_drawing(drawing_of(answer, "since_two"))
        say(how_measured(answer.value), small=True)
    cover.judge(answer.value.outcome(rung), _change_in_words(answer.value, rung))


def _show_rung(view: View) -> None:
    """Show one change: the diagram, its equations, both numbers on the text, what it costs and what it was worth."""
    rung = RUNG.show(view)
    _diagram(view, rung)
    _both_ways(view, rung)
    _ask_change(rung)
    page, part = DEEPER[rung]
    with st.container(horizontal=True):
        _train_both(rung)
        if page:
            _offer_deeper(page, part)
    say(t("since.twins"), small=True)


CHANGE = Part("since", "rung", _show_rung)
