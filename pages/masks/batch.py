"""The page's part on batches: several texts padded, the masks of one of them, and torch's opposite polarity."""

import html

import numpy as np
import streamlit as st

from pages.masks.figures import batch_figure
from pages.ui.asking import ask
from pages.ui.boxes import ask_first, lazy_box
from pages.ui.exports import export_matrix
from pages.ui.header import View
from pages.ui.language import language, section, strings, t
from pages.ui.last_text import read_and_tell
from pages.ui.matrix import show_matrix
from pages.ui.number_format import significant
from pages.ui.url import choose_from_list, current, set_choice, text_area
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


def _text_area() -> tuple[str, str]:
    """Show the text area and return its text and the default one of this language."""
    name, default = "masks_lines", DEFAULTS[language()]
    if current(name) in DEFAULTS.values():
        set_choice(name, default)
    return text_area(t("masks.lines"), name=name, default=default, height=110, most=MOST * CHARACTERS), default


def _lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text that are not empty.

    Raises:
        ValueError: there are too few or too many, or one is too long; the message is for the page.
    """
    found = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not FEWEST <= len(found) <= MOST:
        raise ValueError(t("masks.lines_needed", fewest=FEWEST, most=MOST, count=len(found)))
    long = next((index for index, line in enumerate(found) if len(line) > CHARACTERS), None)
    if long:
        raise ValueError(t("masks.line_too_long", line=long, most=CHARACTERS))
    return found


def _show_ids(batch: BatchMasks) -> None:
    def cell(label: str, token_id: int, real: bool) -> str:
        return f'<td class="{"" if real else "pad"}"><bdi>{html.escape(label)}</bdi><small>{token_id}</small></td>'

    rows = [
        f'<tr><th scope="row">{index}</th>' + "".join(map(cell, labels, ids.tolist(), real.tolist())) + "</tr>"
        for index, (labels, ids, real) in enumerate(zip(batch.labels, batch.token_ids, batch.real, strict=True))
    ]
    st.html(f'{STYLE}<div class="masks-batch-room"><table class="masks-batch">{"".join(rows)}</table></div>')
    padding = float(1 - np.mean(batch.real))
    st.caption(t("masks.ids", rows=batch.real.shape[0], columns=batch.real.shape[1], share=f"{padding:.0%}"))
    if batch.unknown:
        st.caption(t("masks.unknown", count=batch.unknown))


def _try_polarity(view: View, texts: tuple[str, ...]) -> None:
    box = lazy_box(t("try.heading"), icon=":material/science:", key="masks_try_polarity")
    if box is None:
        return
    with box:
        options = {name: t(f"masks.guess_{name}") for name in ("error", "same", "other")}
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


def batch_part(view: View) -> None:
    """Show the batch's ids, and the masks of a chosen text as boolean and as additive ones."""
    text_place, pick_place = st.columns([2, 1], gap="medium")
    with text_place:
        text, example = _text_area()
    texts = read_and_tell("masks_lines", text, example, _lines)
    if texts is None:
        return
    options = {str(index): f"{index} · {text[:40]}" for index, text in enumerate(texts)}
    with pick_place:
        source = choose_from_list(t("masks.source"), options, name="masks_source") or "0"
        turned = dict(reversed(options.items()))
        target = choose_from_list(t("masks.target"), turned, name="masks_target") or "0"
    answer = ask(
        batch_masks, bundle=view.bundle, texts=texts, source=int(source), target=int(target), n_tokens=N_TOKENS
    )
    _show_ids(answer.value)
    targets = answer.value.labels[int(target)][: int(answer.value.real[int(target)].sum())]
    figure = batch_figure(
        answer.arrays,
        answer.value.labels[int(source)],
        targets,
        strings("axis") | strings("masks_figure"),
        strings("matrix"),
        version=f"{source}.{target}|{'|'.join(texts)}",
        note=section("masks", "batch_note"),
    )
    show_matrix(figure, answer, key="masks_batch")
    export_matrix(figure, answer, key="masks_batch")
    _try_polarity(view, texts)
