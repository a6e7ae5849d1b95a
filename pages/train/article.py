"""What each of the article's choices is worth on this app's small model, as it was measured."""

import streamlit as st

from pages.kit.experiment import lazy_box
from pages.kit.glossary import show_prose
from pages.kit.number_format import markdown_table, minus
from pages.language import joined, plain, section, t
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
        sizes = {"examples": found.examples, "tokens": found.tokens}
        sizes |= {"epochs": found.epochs, "seeds": len(found.of("ours"))}
        fewest, most = found.set_aside
        shown = {name: f"{value:,}" for name, value in sizes.items()}
        shown["held_out"] = (
            f"{most:,}" if fewest == most else t("article.from_to", fewest=f"{fewest:,}", most=f"{most:,}")
        )
        show_prose(section("train", "article_after").format(**shown, judged=joined(alone(found), together(found))))
        st.caption(f"`{found.command}`")


LEARNED, BEGUN = 0.75, 0.6  # of its own reviews, of which half have each class


def alone(found: ArticleMeasured) -> str:
    """Return in words whether the small model learns its own reviews, LEARNED of them, with each choice alone."""
    reached = {choice: found.mean(choice)[0] for choice in CHOICES}
    slow = [choice for choice, train in reached.items() if train < LEARNED]
    if not slow:
        return t("article.each_learns", least=f"{min(reached.values()):.0%}")
    return t("article.some_slow", names=", ".join(t(f"article.{choice}") for choice in slow), learned=f"{LEARNED:.0%}")


def together(found: ArticleMeasured) -> str:
    """Return in words how far it comes with all choices at once, by the borders BEGUN and LEARNED."""
    train = found.mean("all")[0]
    far = "little" if train < BEGUN else "partly" if train < LEARNED else "learns"
    return t(f"article.all_{far}", train=f"{train:.0%}")


def _table(found: ArticleMeasured) -> str:
    head = [t(f"article.{name}") for name in ("choice", "train", "held_out", "range", "points")]
    usual = found.mean("ours")[1]
    rows = []
    for choice in ("ours", *CHOICES, "all"):
        train, held_out = found.mean(choice)
        ends = [row.held_out for row in found.of(choice)]
        worth = "" if choice == "ours" else minus(f"**{100 * (held_out - usual):+.1f}**")
        spread = f"{min(ends):.1%} … {max(ends):.1%}"
        rows.append((t(f"article.{choice}"), f"{train:.0%}", f"{held_out:.1%}", spread, worth))
    return markdown_table(head, rows, right=4)
