"""The other half under the glass: what the text should have said, each cell's gradient, and a nudge that checks it."""

import re
from collections.abc import Mapping

import streamlit as st

from pages.glass.choice import look_at
from pages.kit.asking import ask_once
from pages.kit.controls import Choice
from pages.kit.experiment import say, say_number
from pages.kit.header import View
from pages.kit.number_format import percent, significant
from pages.kit.url import in_url
from pages.kit.verdict import class_word
from pages.language import plain, t
from transformer_core.analysis.arithmetic import Differentiated, GradientArithmetic, Pass
from transformer_core.analysis.arithmetic.nudge import Nudge, nudge
from transformer_core.analysis.gradients.loss import TextLoss, likeliest_answers, takes_answer, text_loss
from transformer_core.probe import Edit

ANSWER = "glass_answer"
NUMBER = re.compile(r"[0-9]{1,7}")
SHOWN = Choice("glass_shows", ("value", "gradient", "both"), label="glass.shows", words="glass.shows_{}")
STEPS = ("0.001", "0.01", "0.1", "1")
TargetIds = tuple[int, ...] | None


def _steps(_: View | None = None) -> Mapping[str, str]:
    return {"0": t("glass.nudge_none"), **{step: f"+{step}" for step in STEPS}}


STEP = Choice("glass_step", _steps, label="glass.nudge", kind=float)


def answer_word(view: View, answer: int) -> str:
    """Return what people call an answer, for Markdown."""
    label = view.bundle.reader.label(answer)
    return class_word(label) if view.bundle.reader.asks == "class" else plain(label)


def choose_loss(view: View, run: Pass, target_ids: TargetIds) -> TextLoss | None:
    """Show what the text should have said, a choice where it does not say so itself; None where it has no loss.

    Args:
        run: a pass over the text.
    """
    if view.bundle.reader.asks is None:
        st.info(t("glass.no_loss_kind"), icon=":material/info:")
        return None
    answers = dict(likeliest_answers(view.bundle, view.encoding, run.trace))
    answer = None
    if answers:
        options = {str(one): f"{answer_word(view, one)} · {percent(share)}" for one, share in answers.items()}
        answer = Choice(ANSWER, options, label="glass.answer", kind=int, form="list", always=True).show(view)
    try:
        return text_loss(view.bundle, view.encoding, target_ids=target_ids, answer=answer)
    except ValueError:
        st.info(t("glass.no_loss_text"), icon=":material/info:")
        return None


def linked_loss(view: View, target_ids: TargetIds) -> TextLoss | None:
    """Return the loss that a link of the live picture means, None where it shows values alone.

    Raises:
        ValueError: the text has none, or no such answer.
    """
    if SHOWN.read() == "value":
        return None
    written = in_url(ANSWER)
    if not takes_answer(view.bundle.reader, view.encoding):
        return text_loss(view.bundle, view.encoding, target_ids=target_ids)
    if not NUMBER.fullmatch(written):
        raise ValueError(f"{ANSWER}={written[:80]!r} must be the number of an answer")
    return text_loss(view.bundle, view.encoding, answer=int(written))


def show_loss(view: View, loss: TextLoss, found: Differentiated) -> None:
    """Say what the loss is, and how large."""
    kind = loss.asks if loss.asks != "masked" or takes_answer(loss.reader, view.encoding) else "unmasked"
    words = t(
        f"glass.loss_{kind}",
        loss=significant(found.loss, 5),
        count=found.n_answers,
        answer=answer_word(view, loss.answers[0]),
    )
    say(words)
    if not found.gradients.any():
        st.caption(t("glass.gradient_zero"))


def show_readers(slope: GradientArithmetic) -> None:
    """Show the tensors that hand a gradient back, each with the formula of its derivative; a click looks at one."""
    differs = {"recorded": significant(slope.recorded), "summed": significant(slope.value)}
    if slope.edited:
        names = ", ".join(f"`{name}`" for name in slope.edited)
        st.markdown(f":orange-badge[:material/edit: {t('glass.slope_edited')}] {names}")
    elif slope.agrees:
        st.markdown(f":green-badge[:material/check: {t('glass.slope_agrees')}]")
    else:
        st.markdown(f":red-badge[:material/priority_high: {t('glass.slope_differs', **differs)}]")
    st.caption(t("glass.readers" if slope.parts else "glass.no_readers"))
    for part in slope.parts:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                f"`{part.name}`",
                key=f"glass reader {part.name}",
                type="tertiary",
                on_click=look_at,
                args=(part.name,),
                width="content",
            )
            st.markdown(f"${part.slope}$" if part.slope else f":gray[{t('glass.no_slope')}]", width="content")


def show_nudge(
    view: View, name: str, index: tuple[int, ...], loss: TextLoss, target_ids: TargetIds, edits: Mapping[str, Edit]
) -> None:
    """Let a person add to the cell, and show the change of the loss beside gradient times step."""
    step = STEP.show(view)
    if not step:
        st.caption(t("glass.nudge_note"))
        return
    answer = loss.answers[0] if takes_answer(loss.reader, view.encoding) else None
    asked = {"prompt": view.prompt, "name": name, "index": index, "step": step, "answer": answer}
    asked |= {"target_ids": target_ids} if target_ids else {}
    show_nudged(nudge(**asked, edits=edits) if edits else ask_once(nudge, **asked).value)


def show_nudged(found: Nudge) -> None:
    """Show both losses, their difference and what the gradient says of it, and whether they agree."""
    rows = {
        "before": significant(found.before, 7),
        "after": significant(found.after, 7),
        "change": significant(found.change, 3, sign=True),
        "expected": significant(found.expected, 3, sign=True),
    }
    with st.container(key="figure_nudge"):
        for place, (row, value) in zip((*st.columns(2), *st.columns(2)), rows.items(), strict=True):
            say_number(t(f"glass.nudge_{row}"), value, at=place)
        say(t(f"glass.nudge_fit_{found.fit}"))
