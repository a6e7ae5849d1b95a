"""The Lab's log: what a visitor tried, one row an intervention, kept on the server for them alone, with files of it."""

import codecs
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from pages.kit.asking import Answer
from pages.kit.exports import rows_csv
from pages.kit.header import View
from pages.kit.uploads import let_go, upload
from pages.kit.url import LONGEST_LINK, in_bytes
from pages.lab.script import script_of
from pages.language import plain, t
from pages.room import Part
from pages.serving.limits import limits
from pages.serving.owners import is_person, visitor
from transformer_core.analysis.lab.changes import changes_of, lens_names
from transformer_core.analysis.lab.intervention import Effect
from transformer_core.kept import kept_at
from transformer_core.training.runs.store.folder import write_whole
from transformer_core.untrusted.tables.cleaning import Broken
from transformer_core.untrusted.tables.delimited import Delimited
from transformer_core.untrusted.tables.table import open_table

LOGS = "VITRINE_LOGS"
ROWS, SEEN = "lab_log", "lab_log_seen"
MOST_KEPT_MB, MOST_LOGS = 2, 500  # of one visitor's rows on the disk, and visitors; the longest unused go first
MOST_ROWS, MOST_MB, LONG = 500, 8, 4_000
LONGEST = {"changes": 200_000}  # characters: painted strokes, and lists of texts; of other columns LONG
TEXT = ("what", "model", "text", "answer", "changes", "transformer_lens", "link", "note")
NUMBERS = ("before", "after", "random", "random_least", "random_most", "passes")
COLUMNS = (*TEXT[:4], *NUMBERS, *TEXT[4:])


def _file() -> Path | None:
    """Return where this visitor's rows are kept; None where nothing is, or nobody would find them again."""
    if limits().read_only or not is_person():
        return None
    return kept_at(LOGS, "logs") / f"{visitor() or 'home'}.json"


def rows() -> list[dict[str, Any]]:
    """Return this visitor's rows, those of another tab among them."""
    file = _file()
    with suppress(OSError, ValueError):
        if file is not None and (found := file.stat()).st_mtime_ns != st.session_state.get(SEEN):
            st.session_state[SEEN] = found.st_mtime_ns
            if found.st_size <= MOST_KEPT_MB << 20:
                st.session_state[ROWS] = rows_from(file.read_bytes())
    return st.session_state.setdefault(ROWS, [])


def keep_rows(kept: Sequence[dict[str, Any]]) -> None:
    """Put other rows in the place of this visitor's, and say where they last for this visit alone."""
    st.session_state[ROWS], file = list(kept), _file()
    if file is None:
        return
    content = json.dumps(list(kept), ensure_ascii=False).encode("utf-8", "replace")
    try:
        if len(content) > MOST_KEPT_MB << 20:
            raise OSError(f"more than {MOST_KEPT_MB} MB")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
        st.session_state[SEEN] = file.stat().st_mtime_ns
        others = sorted(file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime_ns)
        for oldest in others[:-MOST_LOGS]:
            oldest.unlink(missing_ok=True)
    except OSError as error:
        st.toast(t("lab.log_not_kept", why=plain(error.strerror or str(error))), icon=":material/cloud_off:")


def row_of(view: View, answer: Answer[Effect], *, what: str, link: str) -> dict[str, Any]:
    """Return the row of one measured intervention."""
    found, asked = answer.value, answer.arguments
    controls = found.controls if found.controls.size else [float("nan")]
    return {
        "what": what,
        "model": view.bundle.name,
        "text": asked["prompt"].text,
        "answer": json.dumps(asked["answer"], ensure_ascii=False),
        "before": round(found.before, 6),
        "after": round(found.after, 6),
        "random": round(float(sum(controls) / len(controls)), 6),
        "random_least": round(float(min(controls)), 6),
        "random_most": round(float(max(controls)), 6),
        "passes": found.passes,
        "changes": json.dumps(asked["changes"], ensure_ascii=False),
        "transformer_lens": ", ".join(lens_names(changes_of(asked["changes"]), view.bundle)),
        "link": link,
        "note": "",
    }


def offer_row(view: View, answer: Answer[Effect], *, what: str, part: str) -> None:
    """Show the button that writes what is on the screen into the log."""
    query = st.query_params.to_dict() | {"lab_part": part, "model": view.bundle.name}
    with_text = query | {"text": view.encoding.text}
    query = with_text if in_bytes(with_text) <= LONGEST_LINK else query

    def write() -> None:
        if len(rows()) < MOST_ROWS:
            keep_rows([*rows(), row_of(view, answer, what=what, link=f"lab?{urlencode(query)}")])
            st.toast(t("lab.logged", count=len(rows())), icon=":material/edit_note:")
        else:
            st.toast(t("lab.log_full", most=MOST_ROWS), icon=":material/block:")

    st.button(
        t("lab.log_this"),
        icon=":material/edit_note:",
        key=f"log_{part}",
        on_click=write,
        disabled=not answer.arguments["changes"],
    )


def rows_from(raw: bytes) -> list[dict[str, Any]]:
    """Return the rows of a file that the log wrote, in JSON or CSV.

    Raises:
        ValueError: what is wrong with it.
    """
    try:
        is_json = raw.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
        found = json.loads(raw.decode("utf-8-sig")) if is_json else _table(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(t("lab.not_a_log", error=str(error)[:200])) from error
    if not isinstance(found, list) or len(found) > MOST_ROWS:
        raise ValueError(t("lab.too_many_rows", most=MOST_ROWS))
    return [_checked(number, row) for number, row in enumerate(found, start=1)]


def _table(raw: bytes) -> list[dict[str, Any]]:
    """Return the rows of a table as this log writes it, or a spreadsheet, with semicolons and decimal commas.

    Raises:
        ValueError: what is wrong with it.
    """
    table, broken = open_table(raw, name="the log", has_header=True), Broken()
    if "changes" not in table.columns:
        raise ValueError("changes")  # the column that a table must have
    if isinstance(table, Delimited):
        table = replace(table, dialect=replace(table.dialect, skip_blanks=False))  # blanks are the texts' own
    cells = [row for _, columns in table.batches(table.columns, broken) for row in zip(*columns, strict=True)]
    if broken:
        raise ValueError(broken.words())
    rows = [dict(zip(table.columns, row, strict=True)) for row in cells]
    return [row | {name: row.get(name, "").replace(",", ".") for name in NUMBERS} for row in rows]


def _checked(number: int, row: Any) -> dict[str, Any]:
    """Return one row with all columns and nothing else.

    Raises:
        ValueError: what is wrong with it.
    """
    if not isinstance(row, Mapping):
        raise ValueError(t("lab.bad_row", row=number, error=type(row).__name__))
    try:
        checked: dict[str, Any] = {name: str(row.get(name) or "")[: LONGEST.get(name, LONG)] for name in TEXT}
        checked |= {name: float("nan" if row.get(name) in (None, "") else row[name]) for name in NUMBERS}
        changes_of(json.loads(checked["changes"] or "[]"))
        json.loads(checked["answer"] or "null")
        if not checked["link"].startswith("lab?"):
            checked["link"] = ""
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(t("lab.bad_row", row=number, error=str(error)[:200])) from error
    return {name: checked[name] for name in COLUMNS}


def _show(_: View) -> None:
    """Show the rows with their notes, the files, and what brings rows back."""
    if rows():
        _show_table(rows())
    else:
        st.info(t("lab.log_empty"), icon=":material/edit_note:")
    _show_files(rows())
    given = upload(t("lab.import"), ["json", "csv"], key="lab_import", most_mb=MOST_MB)
    if given is not None:
        let_go("lab_import")
        try:
            keep_rows([*rows(), *rows_from(given.getvalue())][:MOST_ROWS])
        except ValueError as error:
            st.session_state.lab_refused = str(error)
        else:
            st.session_state.pop("lab_refused", None)
            st.rerun()
    if refused := st.session_state.get("lab_refused"):
        st.error(plain(refused), icon=":material/block:")


def _show_table(kept: Sequence[dict[str, Any]]) -> None:
    shown = [{name: row[name] for name in COLUMNS if name != "changes"} for row in kept]
    config: dict[str, Any] = {name: st.column_config.TextColumn(t(f"lab.column_{name}")) for name in TEXT}
    config |= {name: st.column_config.NumberColumn(t(f"lab.column_{name}"), format="%.3f") for name in NUMBERS}
    config["passes"] = st.column_config.NumberColumn(t("lab.column_passes"), format="%d")
    config["link"] = st.column_config.LinkColumn(t("lab.column_link"), display_text=t("lab.open"))
    columns = ["what", "before", "after", "random", "passes", "link", "note", "model", "text", "transformer_lens"]
    edited = st.data_editor(
        shown,
        column_config=config,
        column_order=columns,
        disabled=[name for name in COLUMNS if name != "note"],
        hide_index=True,
        width="stretch",
        key=f"lab_rows_{len(kept)}",
    )
    notes = [str(after["note"] or "")[:LONG] for after in edited]
    if notes != [row["note"] for row in kept]:
        keep_rows([row | {"note": note} for row, note in zip(kept, notes, strict=True)])


def _show_files(kept: Sequence[dict[str, Any]]) -> None:
    files = {
        "csv": ("CSV", "text/csv", lambda: rows_csv(list(kept)).encode("utf-8-sig")),
        "json": ("JSON", "application/json", lambda: json.dumps(list(kept), ensure_ascii=False, indent=1)),
        "py": ("Python", "text/x-python", lambda: script_of(kept)),
    }
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for ending, (label, mime, make) in files.items():
            icon = ":material/download:"
            st.download_button(
                label,
                make,
                f"lab_log.{ending}",
                mime,
                key=f"lab_{ending}",
                icon=icon,
                on_click="ignore",
                disabled=not kept,
            )
        st.button(t("lab.log_clear"), icon=":material/delete:", disabled=not kept, on_click=keep_rows, args=([],))


LOG = Part("lab", "log", _show, sites=None)
