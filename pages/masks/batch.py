"""The page's part on batches: several texts padded, the masks of one of them, and torch's opposite polarity."""

import html

import numpy as np
import streamlit as st

from pages.kit.asking import ask
from pages.kit.controls import Choice, Text, Values
from pages.kit.experiment import ask_first, experiment, options_of
from pages.kit.header import View
from pages.kit.live import Live, show_lines
from pages.kit.matrix import Picture, show_picture
from pages.kit.number_format import significant
from pages.language import language, section, strings, t
from pages.masks.figures import batch_figure
from pages.masks.mixed import try_mixed
from pages.room import Part
from transformer_core.analysis.masks.batch_masks import BatchMasks, batch_masks, mask_polarity

DEFAULTS = {
    "en": "I loved it.\nNot a dull scene in two hours.\nThe ending was slow, but superb.",
    "zh": "我很喜欢。\n这部电影没有一分钟沉闷。\n结尾有点慢，但很精彩。",
}
FEWEST, MOST = 2, 6
N_TOKENS = 24
CHARACTERS = 200
STYLE = """<style>
.masks-batch { border-collapse: collapse; font-size: 0.85rem; }
.masks-batch th { text-align: end; padding: 2px 10px 2px 0; font-weight: 400; opacity: 0.75; }
.masks-batch td { border: 1px solid color-mix(in srgb, currentColor 22%, transparent); padding: 3px 7px; }
.masks-batch td { text-align: center; }
.masks-batch td small { display: block; font-variant-numeric: tabular-nums; opacity: 0.75; }
.masks-batch td.pad { background: repeating-linear-gradient(
  135deg, color-mix(in srgb, currentColor 16%, transparent) 0 1px, transparent 1px 6px); }
.masks-batch-room { overflow-x: auto; }
</style>"""


def _lines(_: View, text: str) -> tuple[str, ...]:
    """Return the lines of a text that are not empty.

    Raises:
        ValueError: there are too few or too many, or one is too long; the message is for the page.
    """
    found = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not FEWEST <= len(found) <= MOST:
        raise ValueError(t("masks.lines_needed", fewest=FEWEST, most=MOST, count=len(found)))
    long = next((index for index, line in enumerate(found) if len(line) > CHARACTERS), None)
    if long is not None:
        raise ValueError(t("masks.line_too_long", line=long, most=CHARACTERS))
    return found


LINES = Text(
    "masks_lines",
    lambda _: DEFAULTS[language()],
    label="masks.lines",
    parse=_lines,
    height=110,
    most=MOST * CHARACTERS,
)


def _rows(view: View) -> dict[str, str]:
    return {str(index): f"{index} · {text[:40]}" for index, text in enumerate(LINES.read(view))}


SOURCE = Choice("masks_source", _rows, label="masks.source", kind=int, form="list")
TARGET = Choice(
    "masks_target",
    lambda view: dict(reversed(_rows(view).items())),
    label="masks.target",
    kind=int,
    form="list",
)


def _ids_of(batch: BatchMasks) -> str:
    """Return the table of a batch's tokens and ids."""

    def cell(label: str, token_id: int, real: bool) -> str:
        return f'<td class="{"" if real else "pad"}"><bdi>{html.escape(label)}</bdi><small>{token_id}</small></td>'

    rows = [
        f'<tr><th scope="row">{index}</th>' + "".join(map(cell, labels, ids.tolist(), real.tolist())) + "</tr>"
        for index, (labels, ids, real) in enumerate(zip(batch.labels, batch.token_ids, batch.real, strict=True))
    ]
    return f'<div class="masks-batch-room"><table class="masks-batch">{"".join(rows)}</table></div>'


def _show_padding(batch: BatchMasks) -> None:
    padding = float(1 - np.mean(batch.real))
    st.caption(t("masks.ids", rows=batch.real.shape[0], columns=batch.real.shape[1], share=f"{padding:.0%}"))
    if batch.unknown:
        st.caption(t("masks.unknown", count=batch.unknown))


@experiment("masks_try_polarity")
def _try_polarity(view: View, texts: tuple[str, ...]) -> None:
    options = options_of("masks.guess_{}", ("error", "same", "other"))
    cover = ask_first(section("masks", "try_polarity"), options, name="masks_polarity", about=" ".join(texts))
    found = ask(mask_polarity, bundle=view.bundle, texts=texts, n_tokens=N_TOKENS, causal=True).value
    outcome = "same" if found.mistaken_difference < 1e-3 and not found.undefined else "other"
    measured = t(
        "masks.measured_polarity",
        right=significant(found.difference),
        wrong=f"{found.mistaken_difference:.2f}",
        count=found.undefined,
        all=int(found.real.sum()),
    )
    cover.judge(outcome, measured)
    st.code("ours(x, mask=allowed)\ntorch_attention(x, x, x, attn_mask=~allowed)", language="python")


def _picture(view: View, values: Values) -> Live:
    """Return the batch's ids, and the masks of a chosen text."""
    texts, source, target = values[LINES], values[SOURCE], values[TARGET]
    answer = ask(batch_masks, bundle=view.bundle, texts=texts, source=source, target=target, n_tokens=N_TOKENS)
    targets = answer.value.labels[target][: int(answer.value.real[target].sum())]
    figure = batch_figure(
        answer.arrays,
        answer.value.labels[source],
        targets,
        strings("axis") | strings("masks_figure"),
        note=section("masks", "batch_note"),
    )
    picture = Picture("masks_batch", figure, answer, version=f"{source}.{target}|{'|'.join(texts)}")
    return Live((picture,), lines={"masks_batch_ids": _ids_of(answer.value)})


def _show(view: View) -> None:
    """Show the batch's ids, and the masks of a chosen text as boolean and as additive ones."""
    text_place, pick_place = st.columns([2, 1], gap="medium")
    with text_place:
        LINES.show_box(view)
    texts = LINES.note(view)
    if texts is None:
        return
    with pick_place:
        SOURCE.show(view)
        TARGET.show(view)
    live = BATCH.live(view)
    (picture,) = live.matrices
    show_lines("masks_batch_ids", live.lines["masks_batch_ids"], style=STYLE)
    _show_padding(picture.answer.value)
    show_picture(picture, files=True)
    BATCH.follow(view)
    _try_polarity(view, texts)
    try_mixed(view, texts, n_tokens=N_TOKENS)


BATCH = Part("masks", "batch", _show, _picture, (LINES, SOURCE, TARGET), sites=None)
