"""Tokens as chips: the component, its files, and the table of all its tokens."""

import json
from typing import Any

import streamlit as st

from pages.figures.standalone import component_page
from pages.kit.asking import Answer
from pages.kit.component import registered
from pages.kit.experiment import lazy_box
from pages.kit.exports import Files, caption_of, code_files, offer_files, rows_csv, to_npz
from pages.language import language, strings, t
from pages.tokens.figures import COLUMNS, Chips, Line, rows_of_chips


def show_chips(text: str, lines: tuple[Line, ...], answer: Answer[Any], *, name: str) -> Chips:
    """Show lines of tokens and return the figure; `name` is unique on the page, and `answer` is what they come from."""
    chips = Chips(text, lines, strings("chips"), name, f"{name}|{text}|{[len(line.ids) for line in lines]}")
    registered("chips")(key=f"chips_{name}", data=chips.data(caption=caption_of(answer.arguments)))
    return chips


def offer_chips(chips: Chips, answer: Answer[Any], *, of: str = "tokenizer") -> None:
    """Offer the files of a figure, and show all its tokens as a table when asked.

    Args:
        of: what its lines are, in the table's words.
    """
    columns = {column: t(f"tokens.column_{column}") for column in COLUMNS} | {"tokenizer": t(f"tokens.column_{of}")}
    caption, title, chosen = caption_of(answer.arguments), t("tokens.heading"), language()
    files: Files = {
        "csv": lambda: rows_csv(rows_of_chips(chips, columns)).encode("utf-8-sig"),
        "npz": lambda: to_npz(answer.arrays),
        "html": lambda: component_page(
            "chips",
            json.dumps(chips.data(caption=caption)).encode(),
            title=title,
            language=chosen,
            caption=caption,
        ),
    }
    left, right = st.columns([1, 5])
    with left:
        offer_files(lambda: files | code_files(answer), key=chips.name, stem=chips.name, note=t("tokens.files"))
    with right:
        box = lazy_box(t("tokens.table"), icon=":material/table:", key=f"{chips.name}_table")
    if box is not None:
        box.dataframe(rows_of_chips(chips, columns), hide_index=True, width="stretch")
