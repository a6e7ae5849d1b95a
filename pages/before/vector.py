"""The part on one vector: what is left of each word in the summary, and a translator whose looking is taken away."""

import streamlit as st

from pages.before.gates import show_survivors
from pages.before.shared import has_attention, has_gates, recurrent_config
from pages.ui.asking import ask_once
from pages.ui.boxes import ask_first, lazy_box, say
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, t
from transformer_core.analysis.before.alignments import one_vector

MOST, HALF = 0.8, 0.4


def vector_part(view: View) -> None:
    """Show what the ends of the encoder hold, how many numbers that is, and the experiment."""
    config, count = recurrent_config(view), len(view.encoding)
    for place, (name, number) in zip(
        st.columns(3),
        {"n_words": count, "numbers_one": config.d_memory, "numbers_all": config.d_memory * count}.items(),
        strict=True,
    ):
        place.metric(t(f"before.{name}"), f"{number:,}")
    if has_gates(view):
        st.markdown(f"**{t('before.share_title')}**")
        show_survivors(view, key="before_share")
        tell(section("before", "share_note"), small=True)
    _blind_experiment(view)


def _blind_experiment(view: View) -> None:
    box = lazy_box(t("before.try_vector"), icon=":material/science:", key="before_vector_open")
    if box is None:
        return
    with box:
        if not has_attention(view):
            return
        options = {name: t(f"before.blind_{name}") for name in ("most", "half", "few")}
        question = section("before", "try_vector")
        cover = ask_first(question, options, name="before_blind", about=f"{view.bundle.name} {view.encoding.text}")
        found = ask_once(one_vector, **view.asked).value
        outcome = "most" if found.kept >= MOST else "half" if found.kept >= HALF else "few"
        told = t("before.blind_measured", kept=f"{found.kept:.0%}")
        cover.judge(outcome, told)
        with cover.picture():
            for name, words in (("looking", found.looking), ("blind", found.blind)):
                say(f"{t(f'before.{name}')} **{plain(words) or '…'}**")
            say(section("before", "vector_after"), small=True)
