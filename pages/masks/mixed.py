"""The experiment of the page's part on batches: a padding mask that is repeated head by head mixes up sentences."""

import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import Side, bars
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.number_format import percent
from pages.language import plain, section, t
from transformer_core.analysis.masks.mixed_masks import mixed_masks

ENCODERS = ("classifier", "bert", "encoder", "tagger", "answerer")
MOVED = 1e-4  # as a share of a vector's length; rounding is a thousand times smaller


@experiment("masks_mixed_open", "masks.try_mixed")
def try_mixed(view: View, texts: tuple[str, ...], *, n_tokens: int) -> None:
    """Ask how many sentences change when the batch is re-ordered, and show by how much, in both versions."""
    if view.bundle.kind not in ENCODERS or view.bundle.config.pad_id is None:
        st.info(t("masks.mixed_needs", name=plain(view.bundle.name)), icon=":material/info:")
        return
    options = options_of("masks.mixed_{}", ("none", "some", "all"))
    question = section("masks", "try_mixed").format(count=len(texts))
    cover = ask_first(question, options, name="masks_mixed", about=f"{view.bundle.name} {' '.join(texts)}")
    answer = ask_once(mixed_masks, bundle=view.bundle, texts=texts, n_tokens=n_tokens)
    found = answer.value
    moved = int((found.mixed_moves > MOVED).sum())
    cover.judge("none" if not moved else "all" if moved == len(texts) else "some")
    with cover.picture():
        lines = {"scores.view(batch * n_heads, n, n)": 0, "mask.repeat(n_heads, 1, 1)": 1}
        lines["mask.repeat_interleave(n_heads, 0)"] = 0
        said = (f"{code:36}# {t('masks.mixed_row', sentence=sentence)}" for code, sentence in lines.items())
        st.code("\n".join(said), language="python")
        forms = {"right": "value", "mixed": "key", "mixed_pairs": "query"}  # with the hue of each
        series = {t(f"masks.form_{form}"): getattr(found, f"{form}_moves") for form in forms}
        chart = bars(
            tuple(f"{row} · {text[:24]}" for row, text in enumerate(texts)),
            series,
            across=t("masks.mixed_sentence"),
            up=Side(t("masks.mixed_axis"), format=".0%"),
            hues=tuple(HUES[hue] for hue in forms.values()),
        )
        show_chart(chart, answer, key="masks_mixed", label=t("masks.mixed_label"))
        say(
            t(
                "masks.mixed_measured",
                count=moved,
                all=len(texts),
                most=percent(float(found.mixed_moves.max())),
                mean=percent(float(found.mixed_moves.mean())),
                right=percent(float(max(found.right_moves.max(), found.right_pairs_moves.max()))),
                alone=percent(float(found.mixed_apart.max())),
                pairs=percent(float(found.mixed_pairs_apart.max())),
                own=int((found.worn == [[row] for row in range(len(texts))]).sum()),
                heads=found.worn.size,
            )
        )
        say(t("masks.mixed_alike") if not found.padding else section("masks", "mixed_after"), small=True)
