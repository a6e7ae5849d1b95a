"""The page's part on drafts: a small model proposes the next tokens, the large one checks them in one pass."""

import streamlit as st

from pages.gpt.figures import drafted_passes
from pages.kit.asking import ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Choice, Slider, Values, show_in_columns
from pages.kit.experiment import say
from pages.kit.exports import one_export
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.models import called, open_bundle, with_same_vocabulary
from pages.language import joined, t
from pages.room import Part
from transformer_core.analysis.gpt.draft import MOST_GUESSED, Drafted, drafted
from transformer_core.shares import interval

STEPS = 32
LARGE = 100_000_000  # numbers; such a model takes some 10 s for so many tokens, written twice: it waits to be asked
ASKED = "gpt_draft_asked"
TEXT, LAYERS = "text", "layers"  # what proposes where no other model does
SMALLEST_FIRST = "gpt-draft"


def _drafters(view: View) -> dict[str, str]:
    """Return what can propose: models of the same vocabulary, the model's first layers, and the text itself."""
    names = sorted(with_same_vocabulary(view.bundle.name), key=lambda name: name != SMALLEST_FIRST)
    own = {LAYERS: t("gpt.draft_layers")} if view.bundle.config.n_layers > 1 else {}
    return {name: called(name) for name in names} | own | {TEXT: t("gpt.draft_text")}


DRAFTER = Choice("gpt_drafter", _drafters, label="gpt.drafter", most_buttons=4, always=True)
FIRST = Slider(
    "gpt_draft_layers",
    1,
    lambda view: max(1, view.bundle.config.n_layers - 1),
    lambda view: max(1, view.bundle.config.n_layers // 2),
    label="gpt.draft_first",
)
LENGTH = Slider("gpt_draft_length", 1, MOST_GUESSED, 4, label="gpt.draft_length")


def _full(view: View) -> bool:
    return len(view.encoding) >= view.bundle.config.max_len


def _put_off(view: View) -> bool:
    """Offer to write where that takes a while; tell whether nobody has asked for it of this text."""
    wish = (view.bundle.name, view.encoding.text)
    if view.bundle.n_parameters < LARGE or st.session_state.get(ASKED) == wish:
        return False
    say(t("gpt.draft_waits", count=STEPS))
    go = t("gpt.draft_go", count=STEPS)
    st.button(go, icon=":material/edit:", key="gpt_draft_go", on_click=st.session_state.update, args=({ASKED: wish},))
    return True


def _picture(view: View, values: Values) -> Live:
    """Return each pass of the large model with what was proposed to it.

    Raises:
        ValueError: the text leaves no room to write in.
    """
    if _full(view):
        raise ValueError(f"text has {len(view.encoding)} tokens; the model must have room for more")
    drafter = values[DRAFTER]
    answer = ask_once(
        drafted,
        prompt=view.prompt,
        drafter=None if drafter in (TEXT, LAYERS) else open_bundle(drafter),
        layers=values[FIRST] if drafter == LAYERS else None,
        length=values[LENGTH],
        steps=STEPS,
    )
    kinds = ("accepted", "refused", "unread", "own")
    words = {name: t(f"gpt.draft_{name}") for name in (*kinds, "pass", "place", "token", "kind")}
    passes = [(one.guessed, one.accepted, one.own) for one in answer.value.passes]
    chart = drafted_passes(passes, words, columns=values[LENGTH] + 1)
    return Live(drawings=(Drawing("gpt_drafted", chart, answer, "gpt_drafts", t("gpt.draft_label")),))


def _counted(found: Drafted) -> str:
    """Return in words what the drafts saved, and what they cost."""
    low, high = interval(found.accepted / found.guessed, found.guessed) if found.guessed else (0.0, 0.0)
    share = t(
        "gpt.draft_share",
        accepted=found.accepted,
        guessed=found.guessed,
        share=f"{found.accepted / max(1, found.guessed):.0%}",
        low=f"{low:.0%}",
        high=f"{high:.0%}",
    )
    passes = t(
        "gpt.draft_passes", tokens=found.tokens, passes=len(found.passes), saved=found.tokens - len(found.passes)
    )
    cost = "free" if not found.share else "less" if found.weights < found.tokens else "more"
    weights = t(f"gpt.draft_{cost}", share=f"{found.share:.0%}", weights=f"{found.weights:.1f}", tokens=found.tokens)
    same = t("gpt.draft_same" if found.same == found.tokens else "gpt.draft_differs", same=found.same, n=found.tokens)
    return joined(passes, share if found.guessed else t("gpt.draft_none"), weights, same)


@one_export
def _show(view: View) -> None:
    """Show the passes, what was written, and what they cost."""
    drafter, _ = show_in_columns(view, DRAFTER, LENGTH, widths=(3, 2))
    if drafter == LAYERS:
        FIRST.show(view)
    if _full(view):
        st.info(t("gpt.draft_full", most=view.bundle.config.max_len), icon=":material/block:")
        return
    if _put_off(view):
        return
    (drawing,) = DRAFT.live(view).drawings
    found: Drafted = drawing.answer.value
    show_drawing(drawing)
    DRAFT.follow(view)
    say(_counted(found))


DRAFT = Part("gpt", "draft", _show, _picture, (DRAFTER, FIRST, LENGTH))
