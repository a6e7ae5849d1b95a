"""Download buttons for the head on the screen. PNG and SVG are made by the matrix itself, in the browser.

Read next: ../figures/exports.py.
"""

import streamlit as st

from pages.figures.exports import attention_script, to_csv, to_npz
from pages.figures.matrix import MatrixFigure
from pages.figures.matrix_page import to_html
from pages.ui.header import View
from pages.ui.language import language, t
from pages.ui.models import code_that_opens
from transformer_core.analysis.heads import HeadSteps


def export_head(view: View, layer: int, head: int, steps: HeadSteps, step: str, figure: MatrixFigure) -> None:
    """Offer the chosen step of a head as CSV, .npz, a page of its own figure, and the script that recomputes it."""
    stem = f"attention_layer{layer}_head{head}_{step}"
    (panel,) = figure.panels
    rows, cols = figure.axes(panel)

    def html() -> str:
        return to_html(figure, title=figure.title, language=language())

    def npz() -> bytes:
        arrays = {name: array for name, array in vars(steps).items() if name != "divisor"}
        return to_npz(arrays)

    def script() -> str:
        imports, opening = code_that_opens(view.bundle.name)
        return attention_script(
            imports=imports,
            bundle=opening,
            text=view.encoding.text,
            layer=layer,
            head=head,
            step=step,
            n_tokens=len(view.encoding),
        )

    files = (
        ("CSV", "csv", "text/csv", lambda: to_csv(panel.values, rows.labels, cols.labels).encode("utf-8-sig")),
        (".npz", "npz", "application/octet-stream", npz),
        ("HTML", "html", "text/html", html),
        ("Python", "py", "text/x-python", script),
    )
    box = st.popover(t("export.heading"), icon=":material/download:", key="export_open", on_change="rerun")
    if not box.open:
        return
    with box:
        st.caption(t("export.note"))
        for name, ending, mime, make in files:
            st.download_button(
                name, make, f"{stem}.{ending}", mime, key=f"export {ending}", on_click="ignore", width="stretch"
            )
