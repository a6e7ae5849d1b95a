"""Quality by length of the sentence: without attention, with it, and by the Transformer; then the typed sentence."""

import streamlit as st

from pages.before.figures import length_chart
from pages.before.recurrent import STATES
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.models import model_folders, open_bundle
from pages.kit.number_format import markdown_table, milliseconds
from pages.language import plain, section, t
from pages.room import Part
from transformer_core.analysis.before.by_length import ByLength, by_length
from transformer_core.analysis.before.models_compared import timed_translation
from transformer_core.untrusted.bundle_files import BundleError

SHIPPED = "length_en_fr"


def _bins(found: ByLength) -> list[str]:
    return [
        t("before.bin", fewest=low, most=high, count=f"{count:,}")
        for low, high, count in zip(found.fewest.tolist(), found.most.tolist(), found.sentences.tolist(), strict=True)
    ]


def _show_measured() -> ByLength:
    answer = ask_once(by_length, name=SHIPPED)
    found = answer.value
    options = {name: plain(name) for name in found.models}
    cover = ask_first(section("before", "try_length"), options, name="before_loses")
    most = int(found.lost.argmax())
    ends = [
        f"{plain(name)}: **{found.bleu[place, 0]:.1f} → {found.bleu[place, -1]:.1f}**"
        for place, name in enumerate(found.models)
    ]
    cover.judge(found.models[most], t("before.lost_measured", ends="; ".join(ends)))
    with cover.picture():
        said = {name: t(f"before.bleu_{name}") for name in ("low", "high")}
        said |= {"words": t("before.source_words"), "bleu": "BLEU", "model": t("before.model")}
        chart = length_chart(_bins(found), found.models, found.bleu, found.low, found.high, said)
        show_chart(chart, answer, key="before_length", label=t("before.length_title"))
    return found


def _translate(view: View, names: tuple[str, ...]) -> None:
    """Translate the typed sentence by every model, each with its own time."""
    text = view.encoding.text
    st.subheader(t("before.live"), anchor=False)
    rows = []
    for name in names:
        try:
            found = ask_once(timed_translation, bundle=open_bundle(name), text=text).value
        except BundleError as error:
            rows.append((plain(name), plain(str(error)), "–", "–"))
            continue
        written = plain(found.text).replace("|", "\\|").replace("\n", " ") or "…"
        rows.append(
            (
                plain(name),
                f"**{written}**",
                f"{found.source_tokens}",
                milliseconds(found.seconds).replace(" ", "\u00a0"),
            )
        )
    head = (t("before.model"), t("before.translation_head"), t("before.tokens_read"), t("before.took"))
    st.markdown(markdown_table(head, rows, right=2))
    st.caption(t("before.live_note", count=len(text.split())))


def _show(view: View) -> None:
    """Ask who loses most, show BLEU by length, and translate the typed sentence by the same models."""
    found = _show_measured()
    _translate(view, tuple(name for name in found.models if name in model_folders()))
    show_prose(
        section("before", "length_note").format(sentences=f"{int(found.sentences.sum()):,}", beam=found.beam),
        small=True,
    )
    with st.expander(t("before.measured_by"), icon=":material/terminal:"):
        st.code(found.command, language="bash")
        say(t("before.measured_with", sources=found.sources, signature=found.signature), small=True)


LENGTH = Part("before", "length", _show, sites=("encoder.summary", *STATES), group="attention")
