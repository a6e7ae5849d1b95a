"""The box under the glass: any tensor of a model with its formula, its numbers, their check and its line of code."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from pages.figures.matrix import MatrixFigure
from pages.glass.backward import (
    ANSWER,
    SHOWN,
    choose_loss,
    linked_loss,
    show_loss,
    show_nudge,
    show_readers,
)
from pages.glass.cell import (
    CELL,
    explained,
    head_word,
    show_badge,
    show_cell,
    show_definition,
    show_facts,
    show_line,
    show_sources,
)
from pages.glass.choice import choose_tensor, default_of
from pages.glass.figures import HEAD_AXES, Slice, slice_of, tensor_figure
from pages.kit.asking import Answer
from pages.kit.controls import Choice
from pages.kit.device import device_of_model
from pages.kit.experiment import experiment, fragment
from pages.kit.exports import export_matrix
from pages.kit.header import View, typed_in_link
from pages.kit.live import Live, follow_choice
from pages.kit.matrix import show_matrix
from pages.kit.url import in_url, remember
from pages.kit.verdict import class_word
from pages.language import plain, t
from pages.link import LIVE
from transformer_core.analysis.arithmetic import (
    CellArithmetic,
    Differentiated,
    GradientArithmetic,
    Pass,
    Recomputed,
    differentiable,
    differentiated,
    explain_cell,
    explain_gradient,
    gradient_of,
    read_through,
    recompute,
    tensor_of,
    values_of,
)
from transformer_core.analysis.gradients.loss import TextLoss, takes_answer
from transformer_core.analysis.source import lines_of
from transformer_core.probe import Edit
from transformer_core.sites import site_of
from transformer_core.trace import matches

TARGET = re.compile(r"([0-9]{1,7}(\.[0-9]{1,7}){0,511})?")  # ids with points between them
TOKEN_AXES = ("pos", "query_pos", "key_pos")


@experiment("glass_open", "glass.heading", icon=":material/search:")
def under_the_glass(
    view: View,
    *,
    sites: tuple[str, ...] = ("*",),
    edits: Mapping[str, Edit] | None = None,
    target_ids: Callable[[], tuple[int, ...]] | None = None,
) -> None:
    """Show the box that, once open, runs the model on the view's text and shows any of its tensors.

    Args:
        sites: glob patterns of the tensors that this page is about; one of them is the default, and all can be chosen.
        edits: the page's edits of the forward pass, as of capture.
        target_ids: returns the token ids that a translation model's decoder reads, the start token first; called once
            the box is open.
    """
    _glass(view, sites, dict(edits or {}), None if target_ids is None else target_ids())


def _labels(view: View, name: str, target_ids: tuple[int, ...] | None) -> dict[str, tuple[str, ...]]:
    """Return the labels of the axes that have any: the classes, and the tokens of the source or the target."""
    source = view.encoding.labels
    of_source = not target_ids or name.startswith(("encoder.", "memory"))
    labels = dict.fromkeys(TOKEN_AXES, source if of_source else view.bundle.tokenizer.labels_of(target_ids or ()))
    if ".cross_attention." in name or ".alignment." in name:
        labels["key_pos"] = source
    return labels | {"class": tuple(map(class_word, view.bundle.labels))}


def _heads(values: np.ndarray, axes: Sequence[str]) -> Choice[int]:
    """Return the choice of a head of a tensor, 0 where it has no heads."""
    counts = [size for axis, size in zip(axes, values.shape, strict=True) if axis in HEAD_AXES]
    count = counts[0] if counts else 1
    return Choice("glass_head", range(count), label="glass.head", kind=int)


def live_cell(view: View) -> Live:
    """Return what is explained of the chosen cell of a tensor, which the page has not edited.

    Raises:
        ValueError: the model has no such tensor, or cannot read the target, or the text has no loss.
    """
    written = in_url("glass_target")
    if not TARGET.fullmatch(written):
        raise ValueError(f"glass_target={written[:80]!r} must be ids with points between them")
    target_ids = tuple(map(int, written.split("."))) if written else None
    name = in_url("glass")
    labels = _labels(view, name, target_ids)
    run = read_through(view.bundle, view.encoding, target_ids=target_ids, loss=linked_loss(view, target_ids))
    if name not in run.trace:
        raise ValueError(f"glass={name[:80]!r} is not recorded")
    values, axes = values_of(run, name)
    part = slice_of(values, axes, _heads(values, axes).read())
    cell = part.cell(in_url(CELL)) or part.strongest()
    found, slope = _arithmetic(run, name, part.index(cell))
    return explained(part, cell, found, labels, slope)


def _arithmetic(
    run: Pass, name: str, index: tuple[int, ...]
) -> tuple[CellArithmetic | None, GradientArithmetic | None]:
    """Return how a cell's value and its gradient come about, each where it is shown."""
    slope = explain_gradient(run, name, index) if differentiable(run, name) else None
    return None if slope is not None and SHOWN.read() == "gradient" else explain_cell(run, name, index), slope


def _follow(
    view: View,
    name: str,
    part: Slice,
    cell: tuple[int, int],
    target_ids: tuple[int, ...] | None,
    loss: TextLoss | None,
) -> None:
    text = {"text": view.encoding.text} if view.encoding.add_special else typed_in_link(view)
    link = {"model": view.bundle.name, **text, "glass": name, "glass_head": str(part.head)}
    if loss is not None:
        answer = str(loss.answers[0]) if takes_answer(loss.reader, view.encoding) else ""
        link |= {"glass_shows": SHOWN.read(), ANSWER: answer}
    else:
        link |= {"glass_shows": "value", ANSWER: ""}
    target = ".".join(map(str, target_ids or ()))
    follow_choice("glass", "cell", link | {"glass_target": target, CELL: f"{cell[0]}.{cell[1]}"})


def _cell(part: Slice) -> tuple[int, int]:
    """Return the cell that the URL names, else the strongest; a toast refuses a link to one outside the matrix."""
    asked = st.query_params.get(CELL)
    cell = part.cell(asked)
    if asked is not None and cell is None:
        remember(CELL, None)
        if "glass_seen" not in st.session_state:  # later, the cell is left from another text or tensor
            size = " × ".join(map(str, part.matrix.shape))
            st.toast(
                t("glass.no_cell", asked=plain(asked[:20]), size=size), icon=":material/link_off:", duration="long"
            )
    st.session_state.glass_seen = True
    return cell or part.strongest()


def _keep_cell(cell: tuple[int, int] | None) -> None:
    remember(CELL, None if cell is None else f"{cell[0]}.{cell[1]}")


def _figure(
    part: Slice,
    name: str,
    cell: tuple[int, int],
    labels: dict[str, tuple[str, ...]],
    gradient: Slice | None,
) -> MatrixFigure:
    head = head_word(part)
    return tensor_figure(
        part,
        name,
        site_of(name).scale,
        labels=labels,
        names={axis: t(f"glass.axis_{axis}") for axis in (part.rows, part.cols)},
        cell=cell,
        panel=head,
        gradient=gradient,
        alone=gradient is not None and SHOWN.read() == "gradient",
    )


def _answer(
    view: View, found: Recomputed | Differentiated, run: Pass, target_ids: tuple[int, ...] | None
) -> Answer[Recomputed | Differentiated]:
    """Return the tensor as an answer; an edited pass has no script, which could not repeat the page's edits."""
    arguments = {"prompt": view.prompt, "name": found.name} | ({"target_ids": target_ids} if target_ids else {})
    if run.loss is not None and takes_answer(run.loss.reader, view.encoding):
        arguments["answer"] = run.loss.answers[0]
    function = gradient_of if isinstance(found, Differentiated) else tensor_of
    return Answer(found, function, arguments, repeatable=not run.edited)


def _with_loss(
    view: View, run: Pass, name: str, target_ids: tuple[int, ...] | None, edits: dict[str, Edit]
) -> tuple[Pass, Differentiated | None]:
    """Let a person look at gradients; return the pass with them, and the tensor's, where there are any."""
    shown_place, answer_place = st.columns([5, 7])
    with shown_place:
        if SHOWN.show() == "value":
            return run, None
    with answer_place:
        loss = choose_loss(view, run, target_ids)
    if loss is None:
        return run, None
    run = read_through(view.bundle, view.encoding, target_ids=target_ids, edits=edits, loss=loss)
    if not differentiable(run, name):
        st.info(t("glass.no_gradient_ids"), icon=":material/info:")
        return run, None
    found = differentiated(run, name)
    show_loss(view, loss, found)
    return run, found


@fragment
def _glass(view: View, sites: tuple[str, ...], edits: dict[str, Edit], target_ids: tuple[int, ...] | None) -> None:
    run = read_through(view.bundle, view.encoding, target_ids=target_ids, edits=edits)
    default = default_of([name for name in run.trace if matches(name, sites)] or list(run.trace))
    part_place, tensor_place, head_place = st.columns([3, 5, 4])
    name = choose_tensor(list(run.trace), default, part_place, tensor_place)
    run, slopes = _with_loss(view, run, name, target_ids, edits)
    found, labels = recompute(run, name), _labels(view, name, target_ids)
    with head_place:
        head = _heads(found.values, found.axes).show() if HEAD_AXES & {*found.axes} else 0
        part = slice_of(found.values, found.axes, head)
    gradient = None if slopes is None else slice_of(slopes.gradients, slopes.axes, head)
    show_facts(site_of(name), found, None if slopes is None else slopes.gradients)
    cell = _cell(part)
    index = part.index(cell)
    arithmetic, slope = _arithmetic(run, name, index)
    show_cell(explained(part, cell, arithmetic, labels, slope))
    if slopes is not None and run.loss is not None:
        show_nudge(view, name, index, run.loss, target_ids, edits)
    follows = (
        ("glass", "cell") in LIVE and not edits and view.encoding.pair is None
    )  # else the link does not say what the model reads
    values_place, formula_place = st.columns([3, 2], gap="large")
    with values_place:
        figure = _figure(part, name, cell, labels, gradient)
        if follows:
            figure = replace(figure, pins_for=("glass.cell", CELL))
            _follow(view, name, part, cell, target_ids, None if slopes is None else run.loss)
        answer = _answer(view, slopes or found, run, target_ids)
        of = {"head": part.head} if part.of_head else {}
        version = f"{name}|{part.head}|{view.encoding.text}" + ("" if slopes is None else f"|{SHOWN.read()}")
        show_matrix(figure, answer, key="glass_matrix", of=of, version=version, on_cell=_keep_cell)
        export_matrix(figure, answer, key="glass", of=of)
    with formula_place:
        if slope is not None:
            show_readers(slope)
        if arithmetic is not None:
            show_badge(found)
            show_definition(site_of(name))
            show_sources(arithmetic.sources)
        show_line(lines_of(run.model)[name], device_of_model(run.model))
