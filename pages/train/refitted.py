"""A run's map fitted afresh at each frame beside the film's own, with the displacement of both in numbers."""

import numpy as np
import streamlit as st

from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider
from pages.kit.experiment import ask_first, experiment, options_of
from pages.kit.glossary import show_prose
from pages.kit.number_format import markdown_table
from pages.kit.runs import is_live
from pages.kit.waiting import awaited
from pages.language import joined, plain, section, strings, t
from pages.train.figures import map_chart, moves_chart, reach_of
from pages.train.results import outcome
from transformer_core.analysis.refitted_maps import FEWEST, RefittedMaps, Start, refitted_maps
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.run_store import RunStore

START = Choice[Start]("refit_start", ("random", "pca"), label="refit.start", words="refit.start_{}")
GUESSES = ("alike", "twice", "far")
ALIKE, FAR = 1.25, 3.0
COSTS = 0.01  # of trustworthiness
MAPS = ("refitted", "aligned")
WAITING = 520


def times_as_far(refitted: float, aligned: float) -> str:
    """Return how far points move where each map is fitted afresh, beside the aligned ones: an entry of GUESSES.

    "alike" is less than a quarter further; "far" is three times as far or more.
    """
    if refitted < ALIKE * aligned:
        return "alike"
    return "far" if refitted >= FAR * aligned else "twice"


def what_is_left(found: RefittedMaps) -> str:
    """Return in words what turning fresh maps back onto the frame before takes away of the displacement."""
    aligned, refitted, turned = found.mean_moved
    share = f"{1 - turned / refitted:.0%}" if refitted else "0%"
    return t("refit.left" if turned > aligned else "refit.nothing_left", share=share)


def _mean(trust: np.ndarray) -> float:
    """Return the mean over frames whose points are not all one, nan where there is none."""
    known = trust[np.isfinite(trust)]
    return float(known.mean()) if known.size else float("nan")


def _shown(trust: float) -> str:
    return f"{trust:.3f}" if np.isfinite(trust) else "–"


def cost_of_aligning(found: RefittedMaps) -> str:
    """Return in words what aligning costs in trustworthiness: "little" below COSTS, whichever way."""
    cost = round(_mean(found.refitted_trust), 3) - round(_mean(found.aligned_trust), 3)
    if not np.isfinite(cost):
        return ""
    said = "little" if abs(cost) < COSTS - 1e-9 else "cost" if cost > 0 else "gain"
    return t(f"refit.trust_{said}", cost=f"{abs(cost):.3f}")


def _show_maps(answer: Answer[RefittedMaps], frame: int) -> None:
    found, said = answer.value, strings("refit")
    reach = reach_of(found.aligned, found.refitted)
    classes = [plain(name) for name in found.classes]
    for place, name in zip(st.columns(2, gap="medium"), MAPS, strict=True):
        moved, trust = (float(getattr(found, f"{name}_{what}")[frame]) for what in ("moved", "trust"))
        with place:
            st.markdown(f"**{said[name]}**")
            chart = map_chart(getattr(found, name)[frame], found.labels, found.held_out, classes, said, reach=reach)
            label = t("refit.map_label", map=said[name], step=f"{found.steps[frame]:,}")
            shown = {"frame": int(found.numbers[frame])}
            show_chart(chart, answer, key=f"refit_{name}", label=label, of=shown)
            since = t("refit.since", moved=f"{moved:.2f}") if frame else t("refit.first")
            st.caption(t("refit.below", since=since, trust=_shown(trust)))


def _show_moves(answer: Answer[RefittedMaps], frame: int) -> None:
    found, said = answer.value, strings("refit")
    steps = found.steps.astype(float)
    moves = (found.aligned_moved, found.refitted_moved, found.turned_moved)
    chart = moves_chart(steps, *moves, said, at=float(steps[frame]))
    show_chart(chart, answer, key="refit_moves", label=t("refit.moves_label"))
    aligned, refitted, turned = found.mean_moved
    trust = {name: _shown(_mean(getattr(found, f"{name}_trust"))) for name in MAPS}
    rows = [
        (said["refitted"], f"**{refitted:.2f}**", trust["refitted"]),
        (said["turned"], f"{turned:.2f}", trust["refitted"]),
        (said["aligned"], f"**{aligned:.2f}**", trust["aligned"]),
    ]
    head = (t("refit.mean_of", count=len(steps) - 1), t("refit.col_moved"), t("refit.col_trust"))
    st.markdown(markdown_table(head, rows, right=2))
    show_prose(joined(section("train", "refit_note"), what_is_left(found), cost_of_aligning(found)), small=True)


def show_refitted(store: RunStore) -> None:
    """Show a classifier's maps fitted afresh beside the film's, once the run rests, not astray, and has two frames
    with a map."""
    if store.spec.data.kind != "classifier" or is_live(store.status()):
        return
    if (came := outcome(store)) is not None and came.diverged is not None:
        return
    count = sum(layout.method == "tsne" for layout in store.layouts())
    if count < FEWEST:
        return
    _refitted(store, count)


@experiment("refit_open", "refit.heading", icon=":material/scatter_plot:")
def _refitted(store: RunStore, count: int) -> None:
    cover = ask_first(
        section("train", "refit"), options_of("refit.guess_{}", GUESSES), name="train_refit", about=store.id
    )
    start_place, frame_place = st.columns([1, 1.4], gap="medium")
    with start_place:
        start = START.show()
    with frame_place:
        frame = Slider("refit_frame", 0, count - 1, count - 1, label="refit.frame").show()
    asked = {"run": store.id, "frames": count, "start": start}
    try:
        answer = awaited(refitted_maps, t("refit.fitting"), key="refit", height=WAITING, **asked)
    except (RunError, ValueError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    if answer is None:
        return
    _show_maps(answer, frame)
    aligned, refitted, _ = answer.value.mean_moved
    measured = t("refit.measured", refitted=f"{refitted:.2f}", aligned=f"{aligned:.2f}")
    cover.judge(times_as_far(refitted, aligned), measured)
    with cover.picture("_moves"):
        _show_moves(answer, frame)
