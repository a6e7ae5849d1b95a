"""How a run ended: what early stopping saw, and what a learning-rate range test shows."""

import streamlit as st

from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.number_format import minus, significant
from pages.kit.url import keep
from pages.language import joined, plain, strings, t
from pages.serving.limits import limits
from pages.train.data import begin_with
from pages.train.figures import range_chart
from transformer_core.training.config import TrainConfig
from transformer_core.training.early_stopping import Watched, watch
from transformer_core.training.range_test import RangeTest, read_range_test
from transformer_core.training.runs.store.records import Status, evaluations
from transformer_core.training.runs.store.run_store import RunStore


def _nats(value: float) -> str:
    return minus(f"{value:.3f}")


def early_words(found: Watched, training: TrainConfig, total_steps: int, held_out: int) -> str:
    """Return whether early stopping ended a run, and after which step its held-out loss was lowest.

    Args:
        found: what it saw.
        training: of the run.
        held_out: of how many examples each loss is; 0 where nobody knows.
    """
    rule = {"patience": training.patience, "least": f"{training.min_improvement:g}"}
    came = {"step": f"{found.step:,}", "total": f"{total_steps:,}"}
    said = t("early.stopped" if found.stopped else "early.ran", **rule, **came)
    if found.best != found.best:
        return joined(said, t("early.no_loss"))
    numbers = {"best_step": f"{found.best_step:,}", "best": _nats(found.best)}
    of = t("early.of", count=f"{held_out:,}") if held_out else ""
    if found.best_step == found.step:
        return joined(said, t("early.best_last", of=of, **numbers))
    last = _nats(found.last) if found.last == found.last else t("early.no_number")
    return joined(said, t("early.best", of=of, last=last, **numbers))


def _stand_at(frame: int) -> None:
    keep("frame", str(frame), "")
    keep("step", "", "")


def show_early_stopping(store: RunStore) -> None:
    """Say of a run that rests what early stopping made of it, where it was asked for."""
    training, status, frames = store.spec.training, store.status(), store.frames()
    if not training.stops_early or status.state != "finished" or not frames:
        return
    found = watch(evaluations(frames), training, status.total_steps)
    held_out = store.facts().get("counts", {}).get("held_out", 0)
    with st.container(border=True, key="early_stopping"):
        st.markdown(early_words(found, training, status.total_steps, held_out))
        st.caption(t("early.note"))
        best = next((one.number for one in frames if one.step == found.best_step), None)
        if best is not None and found.best_step != frames[-1].step:
            word = t("early.stand", step=f"{found.best_step:,}")
            st.button(word, icon=":material/history:", key="early_best", on_click=_stand_at, args=(best,))


def range_words(found: RangeTest, training: TrainConfig, status: Status) -> str:
    """Return what a range test shows: where the loss falls, where it is lowest, and how it ends."""
    if found.fall == "short":
        said = t("range.short", steps=f"{status.step:,}")
        return said if found.end == "still" else joined(said, _end_words(found, training, status))
    numbers = {"clear": _nats(found.clear), "start": _nats(found.start), "lowest_loss": _nats(found.lowest_loss)}
    if found.fall == "falls":
        numbers |= {"steepest": significant(found.steepest), "slope": significant(found.slope, sign=True)}
    said = t(f"range.{found.fall}", lowest=significant(found.lowest), **numbers)
    choose = t("range.choose", tenth=significant(found.lowest / 10)) if found.fall == "falls" else ""
    return joined(*filter(None, (said, _end_words(found, training, status), choose)))


def _end_words(found: RangeTest, training: TrainConfig, status: Status) -> str:
    numbers = {"step": f"{status.step:,}", "total": f"{status.total_steps:,}", "to": significant(training.range_to)}
    if found.end in ("diverged", "no_number"):
        numbers["diverged"] = significant(found.diverged)
    return t(f"range.{found.end}", **numbers)


def _train_at(run: str, rate: float) -> None:
    """Fill the form with a run's settings, without its range test and with this rate."""
    begin_with(run, None)
    keep("range_test", "off", "")
    keep("learning_rate", repr(rate), "")


def show_range_test(store: RunStore) -> None:
    """Show the loss of a range test against its learning rate, and say what it shows."""
    curves, status = store.curves(), store.status()
    if not curves.step.size:
        return
    over = status.state == "finished" and status.step < status.total_steps
    try:
        found = read_range_test(curves.learning_rate, curves.loss, ended_early=over)
    except ValueError as error:  # of a run that was brought
        st.error(plain(str(error)), icon=":material/error:")
        return
    said = strings("range_chart")
    marks = {said["steepest"]: found.steepest, said["lowest"]: found.lowest, said["diverged"]: found.diverged}
    if found.fall in ("flat", "short"):
        marks = {said["diverged"]: found.diverged}
    marks = {name: rate for name, rate in marks.items() if rate == rate}
    with st.container(border=True, key="range_test"):
        st.markdown(range_words(found, store.spec.training, status))
        chart = range_chart(found.rates, found.losses, found.smoothed, marks, said)
        answer = Answer(found, read_range_test, {}, repeatable=False)
        show_chart(chart, answer, key="range_chart", stem="range_test", label=t("range.label"))
        if found.fall == "falls" and not limits().read_only:
            rate = float(f"{found.steepest:.1g}")
            word = t("range.train", rate=significant(rate))
            st.button(word, icon=":material/tune:", key="range_train", on_click=_train_at, args=(store.id, rate))
        if found.fall != "short":
            st.caption(t("range.note", window=found.window, clear=_nats(found.clear)))
