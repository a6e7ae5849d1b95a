"""The page's part on the cache: keys and values as they are kept, the bytes that they take, and the time they save."""

import streamlit as st

from pages.figures.curves import Side, curves
from pages.gpt.figures import cache_curves, kept_grid
from pages.kit.asking import ask_once
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Choice, Values, layer_control, show_in_columns
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.exports import one_export
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.number_format import in_bytes, significant
from pages.kit.waiting import awaited, say_when_busy
from pages.language import joined, section, t
from pages.room import Part
from transformer_core.analysis.gpt.cache import CacheTimes, KeptOfText, cache_times, kept_of_text, lengths_for
from transformer_core.layers.cache import MOST_TAKEN_BACK

MEASUREMENT = "gpt_measurement"
SHORT, FAR = 2.0, 5.0

LAYER = layer_control("gpt.cache_layer")
WHAT = Choice("gpt_kept", ("key", "value"), label="gpt.kept_shown", words="gpt.kept_{}")


def _of_heads(view: View, heads: int) -> str:
    """Return what a number of heads of keys and values is called; the model's own is said to be."""
    config = view.bundle.config
    name = "full" if heads == config.n_heads else "multi" if heads == 1 else "grouped"
    own = t("gpt.cache_own") if heads == config.kv_heads else ""
    return joined(t(f"gpt.cache_{name}", heads=heads), own).strip()


def _picture(view: View, values: Values) -> Live:
    """Return the kept keys or values of a layer, and the bytes that they take with more heads of them or fewer."""
    layer, what, config = values[LAYER], values[WHAT], view.bundle.config
    answer = ask_once(kept_of_text, prompt=view.prompt, layer=layer)
    found = answer.value
    figure = kept_grid(
        {"key": found.key, "value": found.value}[what],
        found.labels,
        [t("gpt.kept_read_by", heads=", ".join(map(str, config.readers(kept)))) for kept in range(config.kv_heads)],
        {"token": t("gpt.token"), "dimension": t("axis.dimension"), "quantity": t(f"gpt.kept_{what}")},
        role=what,
    )
    series = {_of_heads(view, count): found.needed[place] / 2**20 for place, count in enumerate(found.heads)}
    chart = curves(
        found.lengths,
        series,
        across=Side(t("gpt.cache_length")),
        up=Side(t("gpt.cache_mebibytes"), format="~g"),
        at=len(view.encoding),
        points=False,
    )
    drawing = Drawing("gpt_bytes", chart, answer, "gpt_cache_bytes", t("gpt.cache_bytes_label"))
    picture = Picture("gpt_kept", figure, answer, version=f"{what}|{layer}|{view.encoding.text}")
    return Live((picture,), drawings=(drawing,))


def _sizes(view: View, found: KeptOfText) -> str:
    """Return in words what this text takes, and what it would with other numbers of heads."""
    config, length = view.bundle.config, len(view.encoding)
    said = t("gpt.cache_size", count=length, size=in_bytes(found.size), layers=config.n_layers, heads=config.kv_heads)
    named = zip(found.heads, found.here, strict=True)
    others = [f"{_of_heads(view, count)} {in_bytes(size)}" for count, size in named if count != config.kv_heads]
    other = t("gpt.cache_other", others="; ".join(others)) if others else ""
    window = t("gpt.cache_window", spare=MOST_TAKEN_BACK) if any(config.windows) else ""
    return joined(*filter(None, (said, other, window)))


@experiment("gpt_cache_open", "gpt.try_cache")
def _cache_box(view: View) -> None:
    """Ask what a cache saves, then measure it on this machine."""
    options = options_of("gpt.cache_{}", ("little", "some", "far"))
    longest = lengths_for(view.bundle)[-1]
    question = section("gpt", "try_cache").format(length=longest)
    cover = ask_first(question, options, name="gpt_cache", about=view.bundle.name)
    st.session_state.setdefault(MEASUREMENT, 0)

    def again() -> None:
        st.session_state[MEASUREMENT] += 1

    asked = {"prompt": view.prompt, "measurement": st.session_state[MEASUREMENT]}
    with cover.picture():
        answer = awaited(cache_times, t("gpt.measuring"), key="gpt_cache", **asked)
        if answer is None:
            return
        found = answer.value
        words = {name: t(f"gpt.cache_{name}") for name in ("length", "milliseconds", "plain", "cached")}
        chart = cache_curves(found.lengths, found.plain, found.cached, words)
        show_chart(chart, answer, key="gpt_cache", label=t("gpt.cache_label"))
        st.button(t("gpt.measure_again"), icon=":material/replay:", key="gpt_measure_again", on_click=again)
        say(section("gpt", "cache_after"), small=True)
        say_when_busy(found.spread)
    outcome = "little" if found.faster < SHORT else "some" if found.faster < FAR else "far"
    cover.judge(outcome, _measured(found))


def _measured(found: CacheTimes) -> str:
    return t(
        "gpt.cache_measured",
        length=int(found.lengths[-1]),
        plain=significant(1_000 * found.plain[-1], 3),
        cached=significant(1_000 * found.cached[-1], 3),
        faster=f"{found.faster:.1f}",
        size=in_bytes(float(found.size[-1])),
        each=in_bytes(found.bytes_a_token),
        apart=significant(found.apart),
    )


@one_export
def _show(view: View) -> None:
    """Show the kept keys or values, the bytes that they take, and what they save."""
    show_in_columns(view, LAYER, WHAT, widths=(3, 2))
    live = CACHE.live(view)
    (picture,), (drawing,) = live.matrices, live.drawings
    found: KeptOfText = picture.answer.value
    show_picture(picture, files=True)
    if found.forgotten:
        st.caption(t("gpt.cache_forgotten", count=found.forgotten))
    show_drawing(drawing)
    CACHE.follow(view)
    st.markdown(_sizes(view, found))
    _cache_box(view)


CACHE = Part("gpt", "cache", _show, _picture, (LAYER, WHAT))
