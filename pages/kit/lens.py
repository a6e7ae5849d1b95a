"""The choice of a lens, and what was measured of a model's tuned one: for every page that reads a model by layers."""

from collections.abc import Sequence

import streamlit as st

from pages.figures.lens import stage_names
from pages.kit.controls import Choice
from pages.kit.experiment import say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.models import first_model, offer_model
from pages.kit.number_format import markdown_table
from pages.language import language, plain, section, t, with_minus
from transformer_core.analysis.lens import THROUGH, Through
from transformer_core.measured import LensStage
from transformer_core.recipes.texts import data_name


def _lenses(view: View) -> Sequence[Through]:
    return THROUGH if view.bundle.lens is not None else THROUGH[:1]


LENS: Choice[Through] = Choice("lens", _lenses, label="lens.choice", words="lens.{}")


def lenses(view: View) -> tuple[Choice[Through], ...]:
    """Return the control to be shown: none for a model without a tuned lens, of which show_lens_measured tells."""
    return () if view.bundle.lens is None else (LENS,)


def nearer(rows: Sequence[LensStage]) -> str:
    """Return at how many stages a tuned lens is surely nearer to the model's own answer: "all", "some" or "none".

    It is where the interval of the change lies below 0.
    """
    sure = sum(row.high < 0 for row in rows)
    return "all" if sure == len(rows) else "some" if sure else "none"


def show_lens_measured(view: View) -> None:
    """Say what a model's tuned lens is, and beside it what it changes on held-out texts.

    Where the model has none, that is said, with the way to one that has.
    """
    rows, kinds = view.bundle.measured.lens, (view.bundle.kind,)
    if view.bundle.lens is None:
        said = t("lens.needs_trained", name=plain(view.bundle.name))
        offer_model(said, kinds, name=first_model(language(), kinds), key="lens_offer")
        return
    prose, table = st.columns(2, gap="large")
    with prose:
        show_prose(section("lens", "tuned"))
    if not rows:
        return
    with prose:
        sure = sum(row.high < 0 for row in rows)
        show_prose(t(f"lens.nearer_{nearer(rows)}", count=sure, stages=len(rows)))
    names = stage_names(len(rows) + 1, {"embedding": t("lens.embedding"), "layer": t("axis.layer")})
    head = [t(f"lens.{name}") for name in ("after", *THROUGH, "change", "interval")]
    cells = []
    for name, row in zip(names, rows, strict=False):
        bounds = " … ".join(with_minus(f"{bound:+.2f}") for bound in (row.low, row.high))
        cells.append((name, f"{row.logit:.2f}", f"{row.tuned:.2f}", f"{row.tuned - row.logit:+.2f}", bounds))
    with table:
        say(markdown_table(head, cells, right=4))
        data = plain(data_name(rows[0].data, language()))
        say(t("lens.measured", data=data, texts=f"{rows[0].texts:,}", tokens=f"{rows[0].tokens:,}"), small=True)
