"""The page's parts on neurons: the strongest of the sentence, the verdict without one, and those that stay at 0."""

import streamlit as st

from pages.feed_forward.convolution import try_convolution
from pages.feed_forward.figures.neurons import moves_chart, quiet_chart, strongest_figure, whole_figure
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Slider, Values, layer_control, show_in_columns
from pages.kit.experiment import ask_first, experiment, fragment, options_of, say
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_matrix, show_picture
from pages.kit.number_format import markdown_table, significant
from pages.kit.verdict import concludes, outcome_word, show_outcome
from pages.kit.waiting import awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.feed_forward.neurons import (
    CorpusNeurons,
    Neurons,
    WithoutNeuron,
    corpus_neurons,
    exciting_tokens,
    neurons,
    sentences_for,
    without_neuron,
)

TOP = 24
FEW = 0.05  # of all neurons
MOVES = ("nothing", "little", "much", "flips")
LITTLE, MUCH = 0.1, 5.0  # percentage points
HEIGHT = 700  # of what stands side by side
DIGITS = 4  # of the numbers that make an activation
AROUND = 42  # characters of context on either side


def _strongest(view: View) -> Answer[Neurons]:
    return ask_once(neurons, prompt=view.prompt, layer=LAYER.read(view), top=min(TOP, view.bundle.config.d_ff))


LAYER = layer_control("feed_forward.layer")
NEURON = Slider(
    "feed_forward_neuron",
    0,
    lambda view: view.bundle.config.d_ff - 1,
    lambda view: _strongest(view).value.columns[0],
    label="feed_forward.choose_neuron",
)


def _picture(view: View, values: Values) -> Live:
    """Return the strongest neurons of the chosen layer, with the chosen one pinned."""
    answer, layer, neuron = _strongest(view), values[LAYER], values[NEURON]
    found = answer.value
    inside = t("feed_forward.strongest", count=len(found.columns))
    halves = {
        t(f"feed_forward.{name}"): half for name, half in (("gate", found.gate), ("up", found.up)) if half is not None
    }
    figure = strongest_figure(
        {**halves, t("feed_forward.product") if halves else inside: found.activation},
        found.columns,
        view.encoding.labels,
        strings("feed_forward"),
        cell=_cell(found, neuron),
        title=inside if halves else "",
        note=_arithmetic(view, found, neuron),
    )
    version = f"{layer}.{neuron}|{view.encoding.text}"
    return Live((Picture("feed_forward_strongest", figure, answer, pins=False, version=version),))


@fragment
def _show(view: View) -> None:
    """Show the strongest neurons, and below them the one that is chosen by its number or by a click."""
    layer, neuron = show_in_columns(view, LAYER, NEURON, gap="large")
    (picture,) = NEURONS.live(view).matrices
    columns = picture.answer.value.columns

    def on_cell(cell: tuple[int, int] | None) -> None:
        if cell is not None and cell[1] < len(columns):
            NEURON.take(int(columns[cell[1]]), view)

    show_picture(picture, on_cell=on_cell, files=True)
    NEURONS.follow(view)
    _whole(view, picture.answer, layer)
    left, right = st.columns(2, gap="large")
    with left:
        _exciting(view, layer, neuron)
    with right:
        _without(view, layer, neuron)
    try_convolution(view, layer)


def _cell(found: Neurons, neuron: int) -> tuple[int, int] | None:
    columns = found.columns.tolist()
    return (int(found.peaks[neuron]), columns.index(neuron)) if neuron in columns else None


def _arithmetic(view: View, found: Neurons, neuron: int) -> str:
    """Return how a neuron's activation comes about at the token where it is strongest."""
    place = int(found.peaks[neuron])
    numbers = {"before": found.pre_activation, "gate": found.gate, "up": found.up, "after": found.activation}
    return t(
        "feed_forward.cell_of_neuron" if found.gate is None else "feed_forward.cell_of_gate",
        neuron=neuron,
        token=view.encoding.labels[place],
        name=t(f"feed_forward.name_{view.bundle.config.activation}"),
        **{name: significant(float(part[place, neuron]), DIGITS) for name, part in numbers.items() if part is not None},
    )


@experiment("feed_forward_whole_open", "feed_forward.whole_open", icon=":material/zoom_out_map:")
def _whole(view: View, answer: Answer[Neurons], layer: int) -> None:
    activation, labels = answer.value.activation, view.encoding.labels
    figure = whole_figure(
        activation,
        labels,
        strings("feed_forward"),
    )
    show_matrix(figure, answer, key="feed_forward_whole", files=True, version=f"whole {layer}|{view.encoding.text}")


def _exciting(view: View, layer: int, neuron: int) -> None:
    st.subheader(t("feed_forward.exciting", layer=layer, neuron=neuron), anchor=False)
    answer = awaited(
        exciting_tokens,
        t("feed_forward.reading", count=sentences_for(view.bundle.config)),
        key="feed_forward_exciting",
        height=HEIGHT,
        stays=True,
        bundle=view.bundle,
        sentences=sentences_for(view.bundle.config),
        layer=layer,
        neuron=neuron,
    )
    if answer is None:
        return
    found = answer.value
    head = (t("feed_forward.pre_activation"), t("feed_forward.activation"), t("feed_forward.in_context"))
    lines = [f"| {' | '.join(head)} |", "|---:|---:|---|"]
    rows = zip(found.pre_activation, found.activation, found.tokens, found.before, found.after, strict=True)
    for before_it, activation, token, before, after in rows:
        context = f"{plain(before[-AROUND:])} **{plain(token.lstrip('·'))}** {plain(after[:AROUND])}"
        lines.append(f"| {before_it:+.3f} | {activation:+.3f} | {context.strip()} |")
    st.markdown("\n".join(lines))
    st.caption(
        t("feed_forward.exciting_note", count=sentences_for(view.bundle.config), share=f"{found.share_above_zero:.1%}")
    )


def _without(view: View, layer: int, neuron: int) -> None:
    st.subheader(t("feed_forward.without", layer=layer, neuron=neuron), anchor=False)
    if not concludes(view):
        return
    options = options_of("feed_forward.moves_{}", MOVES)
    cover = ask_first(
        section("feed_forward", "try_neuron").format(layer=layer, neuron=neuron),
        options,
        name="feed_forward_without",
        about=f"{view.name} {layer}.{neuron}",
    )
    with cover.picture():
        answer = awaited(
            without_neuron,
            t("feed_forward.each_off", count=view.bundle.config.d_ff),
            key="feed_forward_without",
            height=HEIGHT,
            stays=True,
            prompt=view.prompt,
            layer=layer,
            neuron=neuron,
        )
        if answer is None:
            return
        found, view, neuron = answer.value, view.of(answer), int(answer.arguments["neuron"])
        show_outcome(view, found.after.tolist(), beside=found.before.tolist())
        show_chart(
            moves_chart(found.peaks, found.moves, strings("feed_forward"), neuron=neuron),
            answer,
            key="feed_forward_moves",
            stem=f"feed_forward_without_layer{layer}",
            label=t("feed_forward.moves_label", layer=layer),
        )
        say(
            t("feed_forward.moves_note", rho=f"{found.agreement.rho:+.2f}", chance=significant(found.agreement.chance)),
            small=True,
        )
    cover.judge(size_of_move(found.moved, flipped=found.flipped), _measured(view, found), of=answer)


def size_of_move(moved: float, *, flipped: bool) -> str:
    """Return which of MOVES it is when the verdict moves by this many percentage points."""
    if flipped:
        return "flips"
    return "much" if abs(moved) >= MUCH else "little" if abs(moved) >= LITTLE else "nothing"


def _measured(view: View, found: WithoutNeuron) -> str:
    return t(
        "feed_forward.without_measured",
        label=outcome_word(view, found.winner),
        moved=f"{found.moved:+.3f}",
        rank=found.rank,
        count=len(found.moves),
        greatest=f"{abs(found.moves).max():.3f}",
        strongest=int(abs(found.moves).argmax()),
    )


@fragment
def _show_dead(view: View) -> None:
    """Ask how many neurons never rise above 0, then count them by layer."""
    options = options_of("feed_forward.dead_{}", ("none", "few", "many"))
    question = section("feed_forward", "try_dead").format(
        count=sentences_for(view.bundle.config), neurons=view.bundle.config.n_layers * view.bundle.config.d_ff
    )
    cover = ask_first(question, options, name="feed_forward_dead", about=view.bundle.name)
    reading = t("feed_forward.reading", count=sentences_for(view.bundle.config))
    with cover.picture():
        answer = awaited(
            corpus_neurons,
            reading,
            key="feed_forward_dead",
            bundle=view.bundle,
            sentences=sentences_for(view.bundle.config),
        )
        if answer is None:
            return
        found = answer.value
        chart, table = st.columns([3, 2], gap="large")
        with chart:
            show_chart(
                quiet_chart(found.bands, found.within, found.neurons, strings("feed_forward"), band=found.band),
                answer,
                key="feed_forward_quiet",
                label=t("feed_forward.quiet_label"),
            )
        with table:
            say(_counts(found))
            say(
                t(
                    "feed_forward.dead_rule",
                    tokens=f"{found.tokens:,}",
                    count=found.sentences,
                    language=t(f"feed_forward.corpus_{found.language}"),
                    band=f"{found.band:g}",
                ),
                small=True,
            )
        say(section("feed_forward", "dead_after"))
    share = found.never_above_zero.sum() / (found.neurons * len(found.never_above_zero))
    cover.judge(many_dead(share))


def many_dead(share: float) -> str:
    """Return how many of the neurons were never above zero: none, few (less than FEW of them) or many."""
    return "none" if share == 0 else "few" if share < FEW else "many"


def _counts(found: CorpusNeurons) -> str:
    head = [t("feed_forward.layer"), t("feed_forward.never_above"), t("feed_forward.in_band", band=f"{found.band:g}")]
    rows = [
        (str(layer), *(f"{count} / {found.neurons} ({count / found.neurons:.1%})" for count in counts))
        for layer, counts in enumerate(zip(found.never_above_zero, found.in_band, strict=True))
    ]
    return markdown_table(head, rows, right=len(head))


NEURONS = Part("feed_forward", "neurons", _show, _picture, (LAYER, NEURON))
DEAD = Part("feed_forward", "dead", _show_dead)
