"""Files of the figure on the screen: pictures, tables, arrays, a page of its own, and the code that recomputes it.

Each file carries a caption: the model, the arguments, and the texts that were read.
"""

import csv
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import numpy as np
import streamlit as st

from pages.figures.charts import Shown, one_line, rows_of, to_png, to_svg
from pages.figures.charts import to_html as chart_page
from pages.figures.matrix import MatrixFigure
from pages.figures.standalone import component_page
from pages.kit.asking import Answer
from pages.kit.experiment import covered
from pages.kit.models import called
from pages.language import language, plain, strings, t
from pages.serving.headers import PLACE_AGAIN
from transformer_core.bundle import Bundle
from transformer_core.untrusted.tables.delimited import inert

TYPES = {
    "png": ("PNG", "image/png"),
    "svg": ("SVG", "image/svg+xml"),
    "csv": ("CSV", "text/csv"),
    "zip": ("CSV", "application/zip"),
    "npz": (".npz", "application/octet-stream"),
    "html": ("HTML", "text/html"),
    "py": ("Python", "text/x-python"),
    "ipynb": ("Notebook", "application/x-ipynb+json"),
}
Files = dict[str, Callable[[], str | bytes]]
Shows = Mapping[str, Any]  # what a picture shows of its answer, by name, such as a head
NOTHING: Shows = MappingProxyType({})
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Offer:
    """Files of one figure, as offer_files shows them."""

    files: Callable[[], Files]
    key: str
    stem: str
    note: str
    title: str
    covered: bool


_OFFERS: ContextVar[list[Offer] | None] = ContextVar("offers", default=None)


def code_files(answer: Answer[Any]) -> Files:
    """Return the script and the notebook that make an answer again, where its call alone does."""
    about = caption_of(answer.arguments)
    return {"py": lambda: answer.script, "ipynb": lambda: answer.notebook(about)} if answer.repeatable else {}


def offer_files(files: Callable[[], Files], *, key: str, stem: str, note: str, title: str = "") -> None:
    """Offer files by their endings, each made when somebody asks for it.

    Args:
        files: returns them; asked once the box is open.
        key: unique on the page.
        stem: of the files' names.
        note: says what they hold.
        title: of the figure, where it stands beside others.
    """
    offer, offers = Offer(files, key, stem, note, title, covered()), _OFFERS.get()
    if offers is None:
        _show_offers([offer], key=key)
    else:
        offers.append(offer)


def one_export(part: Callable[P, T]) -> Callable[P, T]:
    """Let a part that has several figures end with one export of them all."""

    @wraps(part)
    def shown(*args: P.args, **kwargs: P.kwargs) -> T:
        offers: list[Offer] = []
        outer = _OFFERS.set(offers)
        try:
            found = part(*args, **kwargs)
        finally:
            _OFFERS.reset(outer)
        if offers:
            _show_offers(offers, key=part.__module__)
        return found

    return shown


def _show_offers(offers: list[Offer], *, key: str) -> None:
    """Show the files of every figure that is not covered in one box."""
    there = [offer for offer in offers if not offer.covered]
    box = st.popover(
        t("export.heading"),
        icon=":material/download:",
        key=f"export {key}",
        on_change="rerun",
        disabled=not there,
    )
    if not box.open or not there:
        return
    with box:
        for offer in there:
            if len(offers) > 1:
                st.markdown(f"**{plain(offer.title)}**")
            with st.container(horizontal=True, gap="small"):
                for ending, make in offer.files().items():
                    name, mime = TYPES[ending]
                    place = f"export {offer.key} {ending}"
                    st.download_button(name, make, f"{offer.stem}.{ending}", mime, key=place, on_click="ignore")
            st.caption(offer.note)
        st.html(f"<script>{PLACE_AGAIN}</script>", unsafe_allow_javascript=True)


def export_matrix(figure: MatrixFigure, answer: Answer[Any], *, key: str, of: Shows = NOTHING) -> None:
    """Offer a matrix figure's panels as CSV, the answer as .npz, script and notebook, and a page with the figure.

    PNG and SVG are made by the figure itself, in the browser.
    """
    caption = caption_of(answer.arguments, **of)
    chosen, words = language(), strings("matrix")  # files are made where no page is
    title = figure.title or figure.quantity
    files: Files = {
        "csv": lambda: panels_csv(figure).encode("utf-8-sig"),
        "npz": lambda: to_npz(answer.arrays),
        "html": lambda: component_page(
            "matrix", figure.to_bytes(words, caption=caption), title=title, language=chosen, caption=caption
        ),
    }
    offer_files(lambda: files | code_files(answer), key=key, stem=figure.filename, note=t("export.note"), title=title)


def export_chart(chart: Shown, answer: Answer[Any], *, key: str, stem: str, label: str, of: Shows = NOTHING) -> None:
    """Offer a chart as PNG, SVG, CSV (several tables in a zip) and page, its answer as .npz, script and notebook."""
    about, chosen = (label, *caption_of(answer.arguments, **of)), language()  # files are made where no page is

    def files() -> Files:
        tables = tables_of(rows_of(chart))
        rows: Files = {"csv": lambda: rows_csv(tables[0]).encode("utf-8-sig")}
        if len(tables) > 1:
            rows = {"zip": lambda: tables_zip(tables, stem)}
        return {
            "png": lambda: to_png(chart, about),
            "svg": lambda: to_svg(chart, about),
            **rows,
            "npz": lambda: to_npz(answer.arrays),
            "html": lambda: chart_page(chart, title=label, language=chosen, caption=about[1:]),
            **code_files(answer),
        }

    offer_files(files, key=key, stem=stem, note=t("export.note_chart"), title=label)


TEXTS = ("text", "pair", "other", "texts", "target", "source", "pasted", "sentence")
NAMED = ("layer", "head", "token", "place", "step", "row", "seed", "temperature")
OMITTED = ("prompt", "n_tokens", "top", "measurement")
MOST_TEXTS = 3
SHORT = 40


def caption_of(arguments: Mapping[str, Any], **shown: Any) -> tuple[str, ...]:
    """Return the lines that say what an answer is of.

    Args:
        arguments: that the answer was asked with.
        shown: what the picture shows of it besides, by the same names, such as layer and head.
    """
    facts, texts = [], []
    prompt = arguments.get("prompt")
    read = {} if prompt is None else {"bundle": prompt.bundle, "text": prompt.text, "pair": prompt.pair}
    for name, value in {**read, **arguments, **shown}.items():
        if isinstance(value, Bundle):
            facts.insert(0, t("caption.model", name=one_line(called(value.name), SHORT)))
        elif name in TEXTS and isinstance(value, str | tuple):
            texts += [value] if isinstance(value, str) else [part for part in value if isinstance(part, str)]
        elif value is not None and name not in OMITTED:
            said = value if isinstance(value, str) else repr(value)
            said = one_line(said, SHORT)
            facts.append(t(f"caption.{name}", value=said) if name in NAMED else f"{name}={said}")
    quoted = [t("caption.text", text=one_line(text)) for text in texts[:MOST_TEXTS] if text.strip()]
    return (*filter(None, [" · ".join(facts)]), *quoted)


def to_csv(values: np.ndarray, rows: Sequence[str], cols: Sequence[str]) -> str:
    """Write a matrix with its labels; numbers are written so that they read back exactly.

    Cells that a spreadsheet would take for a formula get a leading apostrophe.

    Shapes:
        values: (row, col)
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["", *map(inert, cols)])
    for label, row in zip(rows, values, strict=True):
        writer.writerow([inert(label), *(repr(float(value)) for value in row)])
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    """Return what is written for a value: text that no spreadsheet takes for a formula, nothing for a gap."""
    if value is None:
        return ""
    return value if isinstance(value, bool | int | float) else inert(str(value))


def panels_csv(figure: MatrixFigure) -> str:
    """Write a figure's one panel as a matrix with its labels, or each cell of its many panels as a line."""
    if len(figure.panels) == 1:
        rows, cols = figure.axes(figure.panels[0])
        return to_csv(figure.panels[0].values, rows.labels, cols.labels)
    lines = []
    for panel in figure.panels:
        rows, cols = figure.axes(panel)
        name = " ".join(filter(None, (panel.row_heading, panel.title))) or panel.id
        for row, label in enumerate(rows.labels):
            lines += [
                {"panel": name, rows.name: label, cols.name: across, "value": float(value)}
                for across, value in zip(cols.labels, panel.values[row], strict=True)
            ]
    return rows_csv(lines)


def rows_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as one table; a column that a row lacks stays empty, and numbers stay numbers."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(map(inert, columns))
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return buffer.getvalue()


def tables_of(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return rows as tables: those of equal columns stand together."""
    tables: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        tables.setdefault(tuple(row), []).append(row)
    return list(tables.values())


def tables_zip(tables: Sequence[Sequence[Mapping[str, Any]]], stem: str) -> bytes:
    """Write every table as a CSV file of its own, in one zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, rows in enumerate(tables):
            archive.writestr(f"{stem}_{number}.csv", rows_csv(rows).encode("utf-8-sig"))
    return buffer.getvalue()


def to_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Write named arrays, compressed, in NumPy's own format without pickles."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
