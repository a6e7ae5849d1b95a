"""The page's part on mixtures: where the router sends each token, each expert's load, and the answer without one."""

import streamlit as st

from pages.feed_forward.curves import LAYER, TOKEN
from pages.feed_forward.figures.mixture import expert_bars, routing_figure
from pages.feed_forward.neurons import MOVES, size_of_move
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Choice, Switch, Values, show_in_columns
from pages.kit.experiment import ask_first, fragment, options_of, say
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.navigation import ICONS, page_path
from pages.kit.verdict import concludes, outcome_word, show_outcome
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.feed_forward.mixture import Routing, WithoutExpert, routing, without_expert


def _busiest(view: View) -> int:
    """Return the expert of the chosen layer that reads most tokens."""
    return int(ask_once(routing, prompt=view.prompt, layer=LAYER.read(view), without=None).value.load.argmax())


EXPERT = Choice(
    "feed_forward_expert",
    lambda view: range(max(1, view.bundle.config.n_experts)),
    label="feed_forward.expert",
    default=_busiest,
    kind=int,
)
AWAY = Switch("feed_forward_away", False, label="feed_forward.away")


def _picture(view: View, values: Values) -> Live:
    """Return the router's choices, those for the chosen token as bars, and how many tokens each expert reads."""
    layer, token, expert, away = values[LAYER], values[TOKEN], values[EXPERT], values[AWAY]
    answer = ask_once(routing, prompt=view.prompt, layer=layer, without=expert if away else None)
    found, words = answer.value, strings("feed_forward")
    named = plain(view.encoding.labels[token])
    figure = routing_figure(
        found.probabilities,
        found.weights,
        view.encoding.labels,
        words,
        cell=(token, expert),
        title=t("feed_forward.routing_title", layer=layer),
    )
    of_token = expert_bars(
        found.probabilities[token],
        set(found.weights[token].nonzero()[0].tolist()),
        words,
        up=words["router_probability"],
        names=(words["chosen_experts"], words["other_experts"]),
        level=(words["uniform"], 1 / len(found.load)),
    )
    loads = expert_bars(
        found.load,
        {expert},
        words,
        up=words["load_axis"],
        names=(words["this_expert"], words["other_experts"]),
        level=(words["even_load"], found.even),
    )
    about_token, about_load = (
        t("feed_forward.token_label", layer=layer, token=named),
        t("feed_forward.load_label", layer=layer),
    )
    drawings = (
        Drawing("feed_forward_token_experts", of_token, answer, "feed_forward_token_experts", about_token),
        Drawing("feed_forward_load", loads, answer, "feed_forward_load", about_load),
    )
    version = f"{layer}.{expert}.{away}|{token}|{view.encoding.text}"
    picture = Picture("feed_forward_routing", figure, answer, pins=False, version=version)
    return Live((picture,), drawings=drawings)


@fragment
def _show(view: View) -> None:
    """Show the router's choices, the chosen token's and each expert's load, then what the answer is without one."""
    if not getattr(view.bundle.config, "n_experts", 0):
        with st.container(key="needs_mixture"):
            st.info(t("feed_forward.needs_mixture", name=plain(view.bundle.name)), icon=":material/info:")
            st.page_link(page_path("my_model"), label=t("feed_forward.open_mixture"), icon=ICONS["my_model"])
        return
    layer, token, expert, away = show_in_columns(view, LAYER, TOKEN, EXPERT, AWAY, vertical_alignment="bottom")
    live = MIXTURE.live(view)
    (picture,) = live.matrices

    def on_cell(cell: tuple[int, int] | None) -> None:
        if cell is not None:
            TOKEN.take(cell[0], view)
            EXPERT.take(cell[1], view)

    show_picture(picture, on_cell=on_cell, files=True)
    for drawing, place in zip(live.drawings, st.columns(2, gap="large"), strict=True):
        with place:
            show_drawing(drawing)
    MIXTURE.follow(view)
    say(_said(view, picture.answer, token, away=expert if away else None), small=True)
    _without(view, layer, expert)


def _said(view: View, answer: Answer[Routing], token: int, *, away: int | None) -> str:
    """Return which experts read the chosen token and with which weights, and what is counted."""
    found, config = answer.value, view.bundle.config
    order = found.weights[token].argsort()[::-1][: config.n_active_experts]
    chosen = ", ".join(f"{one} ({found.weights[token, one]:.3f})" for one in order if found.weights[token, one])
    said = t(
        "feed_forward.routing_note",
        token=plain(view.encoding.labels[token]),
        chosen=chosen,
        n=len(found.weights),
        active=config.n_active_experts,
        experts=config.n_experts,
        even=f"{found.even:.4g}",
    )
    gone = "" if away is None else t("feed_forward.away_note", expert=away)
    shared = t("feed_forward.shared_note") if config.shared_d_ff else ""
    return " ".join(filter(None, (said, shared, gone)))


def _without(view: View, layer: int, expert: int) -> None:
    st.subheader(t("feed_forward.without_expert", layer=layer, expert=expert), anchor=False)
    if not concludes(view):
        return
    cover = ask_first(
        section("feed_forward", "try_expert").format(layer=layer, expert=expert),
        options_of("feed_forward.moves_{}", MOVES),
        name="feed_forward_without_expert",
        about=f"{view.name} {layer}.{expert}",
    )
    answer = ask_once(without_expert, prompt=view.prompt, layer=layer, expert=expert)
    found, words = answer.value, strings("feed_forward")
    with cover.picture():
        show_outcome(view, found.after.tolist(), beside=found.before.tolist())
        names = words["this_expert"], words["other_experts"]
        show_chart(
            expert_bars(found.moves, {expert}, words, up=words["axis_points"], names=names),
            answer,
            key="feed_forward_without_expert",
            stem=f"feed_forward_without_expert_layer{layer}",
            label=t("feed_forward.experts_label", layer=layer),
        )
        say(section("feed_forward", "expert_after"), small=True)
    cover.judge(size_of_move(found.moved, flipped=found.flipped), _measured(view, found, expert))


def _measured(view: View, found: WithoutExpert, expert: int) -> str:
    others = [place for place in range(len(found.moves)) if place != expert]
    heirs = [f"{place} (+{found.taken[place]})" for place in found.taken.argsort()[::-1] if found.taken[place] > 0]
    return t(
        "feed_forward.expert_measured",
        label=outcome_word(view, found.winner),
        expert=expert,
        load=int(found.load[expert]),
        moved=f"{found.moved:+.3f}",
        heirs=", ".join(heirs) or t("feed_forward.nobody"),
        alike=found.alike,
        alike_load=int(found.load[found.alike]),
        alike_moved=f"{found.moves[found.alike]:+.3f}",
        least=f"{found.moves[others].min():+.3f}",
        most=f"{found.moves[others].max():+.3f}",
    )


MIXTURE = Part(
    "feed_forward",
    "mixture",
    _show,
    _picture,
    (LAYER, TOKEN, EXPERT, AWAY),
    sites=("*.router_probabilities", "*.expert_weights", "*.router_scores", "*.expert_outputs"),
)
