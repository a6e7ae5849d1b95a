"""What each of the article's choices is worth on this app's small model, as it was measured."""

import streamlit as st

from pages.ui.boxes import lazy_box
from pages.ui.glossary import tell
from pages.ui.language import plain, section, t
from pages.ui.number_format import markdown_table
from transformer_core.evaluation.article_differences import CHOICES, ArticleMeasured, article_measured


def show_article_differences() -> None:
    """Show a box with a table: a row for each choice, its accuracies and what it is worth in points."""
    box = lazy_box(t("article.heading"), icon=":material/balance:", key="article_open")
    if box is None:
        return
    with box:
        try:
            found = article_measured()
        except (ValueError, OSError) as error:
            st.warning(t("article.missing", error=plain(str(error))), icon=":material/error:")
            return
        st.markdown(_table(found))
        sizes = {"examples": found.examples, "held_out": found.held_out, "tokens": found.tokens}
        sizes |= {"epochs": found.epochs, "seeds": len(found.of("ours"))}
        tell(section("train", "article_after").format(**{name: f"{value:,}" for name, value in sizes.items()}))
        st.caption(f"`{found.command}`")


def _table(found: ArticleMeasured) -> str:
    head = [t(f"article.{name}") for name in ("choice", "train", "held_out", "range", "points")]
    usual = found.mean("ours")[1]
    rows = []
    for choice in ("ours", *CHOICES, "all"):
        train, held_out = found.mean(choice)
        ends = [row.held_out for row in found.of(choice)]
        worth = "" if choice == "ours" else f"**{100 * (held_out - usual):+.1f}**".replace("-", "−")
        spread = f"{min(ends):.1%} … {max(ends):.1%}"
        rows.append((t(f"article.{choice}"), f"{train:.0%}", f"{held_out:.1%}", spread, worth))
    return markdown_table(head, rows, right=4)
