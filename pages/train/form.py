"""The form: what to learn, the model, the optimiser and the run, and from them a spec that the engine has checked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from pages.train.base import Base, choose_base
from pages.train.controls import label_of, value_word
from pages.train.data import Learned, choose_data
from pages.train.samples import show_samples
from pages.train.settings import ALL, SECTIONS, read_settings, show_settings
from pages.train.start import show_start
from pages.ui.boxes import lazy_box
from pages.ui.language import t
from pages.ui.url import current, forget
from transformer_core.training.runs.settings import called, change, obstacles, settings
from transformer_core.training.spec import RunSpec

SUMMARY = ("n_layers", "d_model", "n_heads", "optimizer", "learning_rate", "epochs", "examples")


@dataclass(frozen=True)
class Wanted:
    """What the form asks for: a spec, or in words why there is none."""

    spec: RunSpec | None
    problem: str = ""


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
    asked = spec.data.examples + spec.data.held_out
    if learned.there is not None and asked > learned.there and spec.data.kind == "classifier":
        return Wanted(None, t("data.too_few", there=f"{learned.there:,}", asked=f"{asked:,}"))
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
    box = lazy_box(t("train.settings", summary=_summary(values)), icon=":material/tune:", key="settings_open")
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
