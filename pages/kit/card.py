"""The card of a model: the app's own is Markdown; in any other nothing reaches out and nothing is a link."""

import re
from itertools import groupby

import streamlit as st

from pages.kit.models import comes_with_app
from pages.language import language, plain, t
from transformer_core.bundle import Bundle

LONGEST_CARD = 20_000
MARKED = re.compile(r"(\*\*[^*\n]+\*\*|`[^`\n]+`)")
RULE = re.compile(r"\s*:?-+:?\s*")


def _marked(part: str) -> str:
    return part if part.startswith("`") else f"**{plain(part[2:-2].strip())}**"


def _inline(text: str) -> str:
    parts = MARKED.split(text)  # every second part is bold or code
    return "".join(_marked(part) if odd % 2 else plain(part) for odd, part in enumerate(parts))


def _cell(cell: str) -> str:
    return cell.strip() if RULE.fullmatch(cell) else _inline(cell.strip())


def safe_line(line: str) -> str:
    """Return one line of Markdown that keeps headings, lists, tables, bold and code; all else is plain text."""
    line = line.strip()
    if line.startswith("|"):
        return f"| {' | '.join(_cell(cell) for cell in line.strip('|').split('|'))} |"
    if heading := re.fullmatch(r"#{1,6}\s+(.+)", line):
        return f"\n**{plain(heading[1])}**\n"
    return f"- {_inline(line[2:])}" if line.startswith(("- ", "* ")) else _inline(line)


def safe_text(text: str) -> str:
    """Return Markdown of which safe_line keeps what it keeps, line by line."""
    return "\n".join(map(safe_line, text.splitlines()))


def show_card_text(bundle: Bundle) -> None:
    """Show a model's card in the language chosen, or that it has none.

    A card that may come from anyone keeps its headings, tables, lists, bold words and code; at most LONGEST_CARD
    characters of it are shown.
    """
    card = bundle.card_in(language())
    if comes_with_app(bundle.name):
        st.markdown(card)
        return
    card = card[:LONGEST_CARD] or t("model.no_card")
    for is_code, lines in groupby(card.splitlines(), key=lambda line: line.startswith(("    ", "\t"))):
        text = "\n".join(line.strip() if is_code else safe_line(line) for line in lines)
        if is_code:
            st.code(text, language=None, wrap_lines=True)
        elif text.strip():
            st.markdown(text)
