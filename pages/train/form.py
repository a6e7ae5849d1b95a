"""The form of a new run: its sections, the estimate of its time, and the button that starts it."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from pages.kit.experiment import lazy_box
from pages.kit.refusals import in_own_words
from pages.kit.runs import begin_run, follow, in_words, learned_words, refuse_read_only, starter
from pages.kit.url import current, forget
from pages.kit.waiting import watch
from pages.language import plain, t
from pages.train.data import Base, Learned, choose_base, choose_data, show_samples
from pages.train.settings import ALL, SECTIONS, label_of, read_settings, show_settings, value_word
from transformer_core.examples import most_held_out, rows_needed
from transformer_core.training.corpora.reviews import passage
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.settings import called, change, obstacles, settings
from transformer_core.training.runs.store.records import Estimate
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.characters import require_windows
from transformer_core.training.tasks.masked import sentence_parts

MOST_KEPT = 64
Data = bytes | Path | None
_measuring = ThreadPoolExecutor(max_workers=1, thread_name_prefix="estimate")
_known: OrderedDict[str, Future[Estimate]] = OrderedDict()
_lock = threading.Lock()


def _name_of(spec: RunSpec, data_name: str) -> str:
    """Return one name for all specs that take the same time."""
    rates = replace(spec.training, learning_rate=1e-3, weight_decay=0.0, label_smoothing=0.0, warm_up=0.0)
    rates = replace(rates, range_test=False, patience=1 if rates.stops_early else None, min_improvement=0.0)
    timed = replace(
        spec, name="run", origin=None, start=None, training=replace(rates, schedule="constant", clip_norm=1.0)
    )
    return hashlib.sha256(f"{timed.to_json()}\0{data_name}".encode()).hexdigest()


def estimate(spec: RunSpec, data: Data, data_name: str) -> Future[Estimate]:
    """Return the measurement of a run's time, begun if nobody asked for it yet; it never blocks.

    A session that asks for another one lets go of its last, so that what nobody waits for is not measured.

    Args:
        spec: the run's.
        data: what lies in its file.
        data_name: tells these data from others, which costs less than comparing them.
    """
    name = _name_of(spec, data_name)
    with _lock:
        last = st.session_state.get("estimate_of")
        if last is not None and last != name and last in _known and _known[last].cancel():
            del _known[last]
        st.session_state.estimate_of = name
        if name not in _known or _known[name].cancelled():
            _known[name] = _measuring.submit(starter().estimate, replace(spec, origin=None, start=None), data)
        _known.move_to_end(name)
        while len(_known) > MOST_KEPT:
            _known.popitem(last=False)[1].cancel()
        return _known[name]


def _show_estimate(spec: RunSpec, learned: Learned) -> None:
    """Show the estimate, or that it is being measured."""
    found = estimate(spec, learned.data, learned.name)
    if not found.done():
        st.metric(t("train.takes"), "…")
        st.caption(t("train.measuring"))
        return
    problem = found.exception()
    if problem is not None:
        words = str(problem) if isinstance(problem, ValueError) else type(problem).__name__
        st.warning(t("train.no_estimate", error=plain(words)), icon=":material/timer_off:")
        return
    known = found.result()
    st.metric(t("train.takes"), t("train.about", time=in_words(known.seconds)))
    st.caption(
        t(
            "train.takes_of",
            steps=f"{known.steps:,}",
            step=f"{1_000 * known.seconds_a_step:.0f}",
            frames=known.frames,
            frame=f"{1_000 * known.seconds_a_frame:.0f}",
        )
    )
    if spec.training.stops_early:
        st.caption(t("early.sooner"))
    if known.steps <= spec.training.epochs:
        st.warning(t("train.one_step", batch=f"{spec.training.batch_size:,}"), icon=":material/stacks:")


def _start(spec: RunSpec, learned: Learned) -> None:
    try:
        store = begin_run(spec, learned.data)
    except RunError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    forget("branch")
    follow(store.id)
    st.rerun()


def show_start(spec: RunSpec | None, problem: str, learned: Learned) -> None:
    """Show the time that a run will take and the button that starts it, or why it cannot start."""
    with st.container(border=True):
        if spec is None:
            st.warning(t("train.impossible", error=plain(problem)), icon=":material/block:")
        else:
            st.markdown(t("train.learns_from", learned=f"**{plain(learned_words(spec.data))}**"))
        if refuse_read_only():
            return
        if spec is not None:
            watch(
                lambda: estimate(spec, learned.data, learned.name).done(),
                lambda: _show_estimate(spec, learned),
                key="estimate",
            )
        pressed = st.button(
            t("train.start"), type="primary", icon=":material/play_arrow:", width="stretch", disabled=spec is None
        )
        st.caption(t("train.leave"))
    if pressed and spec is not None:
        _start(spec, learned)


SUMMARY = ("network", "n_layers", "d_model", "n_heads", "optimizer", "learning_rate", "epochs", "examples")


def too_short(spec: RunSpec, data: Data) -> str:
    """Return in words why a text does not suffice for what a run asks for; "" where it does, or there is none."""
    if spec.data.source not in ("characters", "masked_words"):
        return ""
    given = data.read_bytes() if isinstance(data, Path) else data
    text = passage(spec.data.language) if given is None else given.decode(errors="replace")
    try:
        if spec.data.source == "characters":
            require_windows(text, spec.model.max_len)
        else:
            sentence_parts(spec, text)
    except ValueError as error:
        return in_own_words(str(error))
    return ""


@dataclass(frozen=True)
class Wanted:
    """What the form asks for: a spec, or in words why there is none."""

    spec: RunSpec | None
    problem: str = ""


def too_few(spec: RunSpec, there: int | None) -> str:
    """Return in words why so many different examples do not give what a run asks for; "" where they do."""
    asked, most = spec.data.examples + spec.data.held_out, most_held_out(there or 0)
    if there is None or rows_needed(spec.data.examples, spec.data.held_out) <= there:
        return ""
    if spec.data.held_out > most:
        return t("data.too_many_held_out", most=f"{most:,}", there=f"{there:,}")
    return t("data.too_few", there=f"{there:,}", asked=f"{asked:,}") if spec.data.kind == "classifier" else ""


def wanted(base: Base, learned: Learned, values: Mapping[str, Any]) -> Wanted:
    """Return the spec that a form's values make, or why they make none."""
    if learned.problem:
        return Wanted(None, learned.problem)
    try:
        usual = learned.of(base)
        spec = replace(change(usual, **values), origin=base.origin)
        spec = replace(spec, name=called(base.spec, usual, spec))
        spec.data.require_fitting()
    except ValueError as error:
        return Wanted(None, str(error))
    if problem := too_few(spec, learned.there) or too_short(spec, learned.data):
        return Wanted(None, problem)
    if base.has_weights and (fixed := obstacles(base.spec, spec)):
        return Wanted(None, t("train.fixed", names=", ".join(map(label_of, fixed))))
    return Wanted(spec)


def _follow(usual: Mapping[str, Any]) -> None:
    """Let every setting that nobody changed follow its default, which is another one for other data."""
    before = st.session_state.get("usual", usual)
    for one in ALL[1:]:
        held = current(one.name)
        unchanged = held is not None and (held if isinstance(held, str) else one.write(held)) == one.write(
            before[one.name]
        )
        if unchanged and before[one.name] != usual[one.name]:
            forget(one.name)
    st.session_state.usual = usual


def _summary(values: Mapping[str, Any]) -> str:
    return " · ".join(f"{label_of(name)} {value_word(name, values[name])}" for name in SUMMARY if name in values)


def _show_sections(source: str, base: Base, usual: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    names = {name: t(f"section.{name}") for name in SECTIONS}
    st.caption(_summary(values))
    box = lazy_box(t("train.settings"), icon=":material/tune:", key="settings_open")  # with other words, another box
    if box is None:
        return
    with box:
        for section, tab in zip(SECTIONS, st.tabs(list(names.values())), strict=True):
            with tab:
                show_settings(section, source, usual, frozen=base.has_weights)


def show_form() -> None:
    """Show the form with its button to start."""
    form_place, start_place = st.columns([2.6, 1], gap="large")
    with form_place:
        base = choose_base()
        learned = choose_data(base)
    usual = settings(learned.of(base))
    _follow(usual)
    values = read_settings(learned.source, usual)
    if learned.data is None and not learned.problem:
        with form_place:
            show_samples(learned.source, usual | values)
    with start_place:
        asked = wanted(base, learned, values)
        show_start(asked.spec, asked.problem, learned)
    _show_sections(learned.source, base, usual, values)
