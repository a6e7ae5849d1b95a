"""The set of texts that something is measured on: those that a run held out, built-in ones, or those of a person."""

import streamlit as st

from pages.kit.controls import Choice, Text
from pages.kit.experiment import say
from pages.kit.header import View
from pages.kit.refusals import in_own_words
from pages.kit.uploads import upload
from pages.language import joined, plain, t
from transformer_core.analysis.lab.text_sets import MOST_GIVEN_TOKENS, Among, answered_by, knows_answers
from transformer_core.untrusted.tables.answered import LONGEST, MOST_TEXTS, AnsweredTexts, read_answered

FILE = "lab_set_file"
ENDINGS = ["csv", "tsv", "txt", "json", "jsonl", "gz"]
MOST_MB, MOST_PASTED = 4, 40_000  # of a file, and characters


def _kinds(view: View) -> tuple[str, ...]:
    """Return which sets there are; only the model of a run has held-out texts."""
    return (*(["held_out"] if view.bundle.read_held_out is not None else []), "built_in", "pasted", "file")


SET = Choice("lab_set", _kinds, label="lab.set", words="lab.set_{}")
PASTED = Text[str]("lab_pasted", "", label="lab.set_paste", most=MOST_PASTED, height=120, pause=None)


def show_set(view: View) -> Among:
    """Show what chooses the set, and of a person's own what was read; None where it cannot be used, with the reason."""
    kind = SET.show(view)
    if kind == "held_out" or kind == "built_in":
        return kind
    try:
        texts = _pasted() if kind == "pasted" else _of_file()
        if texts is None:
            st.info(t(f"lab.set_missing_{kind}"), icon=":material/info:")
            return None
        if view.bundle.reader.asks is None:  # what has no answers is read
            among: Among = tuple((text, None) for text, _ in texts.rows)
        else:
            among = answered_by(view.bundle, texts.rows)
    except ValueError as error:
        st.info(plain(in_own_words(str(error))), icon=":material/block:")
        return None
    say(joined(*_read_words(view, texts, among)), small=True)
    return among


def _pasted() -> AnsweredTexts | None:
    text = PASTED.show()
    return read_answered(text.encode("utf-8", "replace"), name=t("lab.set_name")) if text.strip() else None


def _of_file() -> AnsweredTexts | None:
    given = upload(t("lab.set_bring"), ENDINGS, key=FILE, most_mb=MOST_MB)
    if given is None:
        return None
    if st.session_state.get("lab_set_of") != given.file_id:
        st.session_state.lab_set_read = read_answered(given.getvalue(), name=given.name)
        st.session_state.lab_set_of = given.file_id
    return st.session_state.lab_set_read


def _read_words(view: View, texts: AnsweredTexts, among: Among) -> list[str]:
    """Return what was read, what was left out, and what the model will be asked, a sentence each."""
    kind = "all" if texts.there == len(texts.rows) else "drawn"
    said = [t(f"lab.set_read_{kind}", count=len(texts.rows), there=f"{texts.there:,}", most=MOST_TEXTS)]
    asks = view.bundle.reader.asks
    if asks is None:
        return said
    answers = asks if asks in ("next", "masked") else "right" if knows_answers(view.bundle, among) else "same"
    said.append(t(f"lab.set_asks_{answers}", most=MOST_GIVEN_TOKENS))
    if texts.n_cut:
        said.append(t("lab.set_cut", count=texts.n_cut, most=f"{LONGEST:,}"))
    if texts.broken:
        why = ", ".join(f"{t(f'intake.{reason}')} ({count:,})" for reason, count in texts.broken.counts.most_common())
        said.append(t("lab.set_left_out", count=len(texts.broken), why=why))
    return said
