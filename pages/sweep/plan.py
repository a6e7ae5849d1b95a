"""What a sweep tries: its base, one or two settings with their values, and the seeds; all of it is in the link."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from pages.kit.controls import Choice, Slider
from pages.kit.runs import find_run, listed_runs
from pages.kit.url import forget, held, keep
from pages.language import language, plain, t
from pages.train.data import in_language
from pages.train.settings import MODEL, MODERN, OPTIMISER, RUN, Flag, Number, Pick, apply, label_of, or_none, value_word
from pages.train.settings import Control as Setting
from transformer_core.training.runs.presets import PRESETS, QUICK
from transformer_core.training.runs.settings import change, settings
from transformer_core.training.runs.sweep import MOST_SEEDS, MOST_VALUES, Sweep
from transformer_core.training.spec import RunSpec

SHORT = "short"  # the preset "quick" for one epoch: trained to its end, all of its runs are nearly always right
BASES = ("quick", "reverse", "characters", "masked_words")
OWN_SHOWN = 12  # runs among the bases
ONE, TWO = "sweep_one", "sweep_two"
NONE = "none"
WITHOUT = ("seed", "frames", "points", "threads")  # they change the record, not what is learned; seeds are asked apart
WITHOUT += ("range_test", "range_from", "range_to")  # a range test is one run that is read by itself
SMALL = (0.0, 0.1, 0.3)  # offered of a number that is 0


def _bases() -> dict[str, str]:
    """Return what a sweep can start from, with labels: presets, and runs of this visitor that began from scratch."""
    own = [run for run in listed_runs() if not run.spec.takes_weights][:OWN_SHOWN]
    presets = {SHORT: t("sweep.base_short")} | {name: t(f"preset.{name}") for name in BASES}
    return presets | {run.id: f"{run.spec.name} · {run.id}" for run in own}


BASE = Choice("sweep_base", lambda _: _bases(), label="sweep.base", form="list")
SEEDS = Slider("sweep_seeds", 1, MOST_SEEDS, 3, label="sweep.seeds")


@dataclass(frozen=True)
class Plan:
    """What is asked for.

    Args:
        sweep: that; None where it cannot be.
        problem: in words, why not.
        data: what its runs learn from, where that is a file.
        data_name: tells these data from others.
    """

    sweep: Sweep | None
    problem: str
    data: Path | None = None
    data_name: str = ""


def base_of(chosen: str) -> tuple[RunSpec, Path | None]:
    """Return the spec that a sweep starts from, and its data where they are a file."""
    if chosen == SHORT:
        return replace(change(in_language(QUICK, language()), epochs=1), name=SHORT), None
    if chosen in PRESETS:
        return in_language(PRESETS[chosen], language()), None
    store = find_run(chosen)
    assert store is not None  # it was listed a moment ago
    file = store.spec.data.file
    return replace(store.spec, origin=None), None if file is None else store.folder / file


def settings_of(spec: RunSpec) -> dict[str, Setting]:
    """Return the settings that a sweep can change, by name: those of the model and of its training, not of the data."""
    offered = apply((*MODEL, *MODERN, *OPTIMISER, *RUN), spec.data.source, spec.network.network)
    return {one.name: one for one in offered if one.name not in WITHOUT}


def values_near(setting: Setting, now: Any) -> list[str]:
    """Return the values of a setting that are tried at first, in writing: its options, or numbers near its own."""
    if isinstance(setting, Flag):
        return [setting.write(False), setting.write(True)]
    if isinstance(setting, Pick):
        return list(dict.fromkeys((now, *setting.options)))[:MOST_VALUES]
    now = setting.off if now is None else now
    if not now:
        near: Sequence[float] = SMALL if isinstance(setting.step, float) else (0, 1, 2)
    elif isinstance(setting.step, int):
        near = (now // 2, now, now * 2)
    else:
        near = (float(f"{now / 3:.0e}"), now, float(f"{now * 3:.0e}"))
    return list(dict.fromkeys(setting.write(one) for one in near if setting.least <= one <= setting.most))


def choose_values(name: str, setting: Setting, now: Any) -> list[Any]:
    """Show the values of a setting that are tried, to take away and to add, and return them.

    Args:
        name: in the URL.
        now: the base's own.
    """
    default = values_near(setting, now)
    if st.session_state.setdefault(f"of {name}", setting.name) != setting.name:
        forget(name)  # the values of another setting
        st.session_state[f"of {name}"] = setting.name

    def read(asked: Any) -> list[str] | None:
        asked = asked.split(",") if isinstance(asked, str) else asked
        if not isinstance(asked, list) or len(asked) > MOST_VALUES:
            return None
        read_values = [setting.read(str(one).strip()) for one in asked if str(one).strip()]
        return None if None in read_values else list(dict.fromkeys(setting.write(one) for one in read_values))

    key, held_values = held(name, default, read, setting.choices)
    options = list(dict.fromkeys((*(setting.options if isinstance(setting, Pick) else default), *held_values)))
    chosen = st.multiselect(
        t("sweep.values", setting=label_of(setting.name)),
        options,
        held_values,
        format_func=lambda one: _word(setting, one),
        key=key,
        max_selections=MOST_VALUES,
        accept_new_options=isinstance(setting, Number),
        help=setting.choices if isinstance(setting, Number) else None,
    )
    good = [one for one in chosen if setting.read(str(one)) is not None]
    if len(good) < len(chosen):
        st.warning(t("sweep.not_a_value", choices=setting.choices), icon=":material/block:")
    keep(name, ",".join(good), ",".join(default))
    return list(dict.fromkeys(or_none(setting, setting.read(one)) for one in good))


def _word(setting: Setting, written: str) -> str:
    value = setting.read(str(written))
    return str(written) if value is None else value_word(setting.name, or_none(setting, value))


def values_name(control: str) -> str:
    """Return the name in the URL of the values of a setting, by the name of its choice."""
    return f"{control}_values"


def cell_word(cell: Mapping[str, Any]) -> str:
    """Return a combination of values in words."""
    return " · ".join(f"{label_of(name)} {value_word(name, value)}" for name, value in cell.items())


def choose_plan() -> Plan:
    """Show the controls of a sweep and return what was chosen."""
    base_place, seeds_place = st.columns(2, gap="large")
    with base_place:
        spec, data = base_of(BASE.show())
    with seeds_place:
        seeds = SEEDS.show()
    offered, now = settings_of(spec), settings(spec)
    names = {name: label_of(name) for name in offered}
    values: dict[str, tuple[Any, ...]] = {}
    for place, (name, column) in enumerate(zip((ONE, TWO), st.columns(2, gap="large"), strict=True)):
        left = {one: word for one, word in names.items() if one not in values}
        options = left if place == 0 else {NONE: t("sweep.none")} | left
        default = "learning_rate" if place == 0 else NONE
        with column:
            setting = Choice(name, options, label=f"sweep.setting_{place}", form="list", default=default).show()
            if setting != NONE:
                values[setting] = tuple(choose_values(values_name(name), offered[setting], now[setting]))
    empty = next((name for name, some in values.items() if not some), None)
    if empty is not None:
        return Plan(None, t("sweep.empty", setting=label_of(empty)))
    try:
        return Plan(Sweep(spec, values, tuple(range(seeds))), "", data, plain(str(data or "")))
    except ValueError as error:
        return Plan(None, str(error))
