"""What a recurrent language model foresees: each character's surprise, the next one, and four models on one text."""

import numpy as np
import streamlit as st

from pages.before.figures import foreseen_bars
from pages.before.recurrent import STATES, is_language_model
from pages.figures.token_strip import text_strip
from pages.gpt.next import expected_drawing
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import clickable, show_chart, show_drawing
from pages.kit.controls import Slider
from pages.kit.experiment import ask_first, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.models import model_names, offer_model, open_bundle
from pages.kit.navigation import open_page
from pages.kit.number_format import markdown_table
from pages.language import corpus_word, joined, language, plain, section, t
from pages.room import Part
from transformer_core.analysis.before.models_compared import Foreseen, foreseen
from transformer_core.analysis.before.textbook import UNITS, textbook
from transformer_core.analysis.gpt.next_token import Surprisals, expected, surprisals
from transformer_core.bundle import Bundle
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.training.runs.presets import RECURRENT_LM
from transformer_core.untrusted.bundle_files import BundleError

BESIDE = "gpt-char"  # the Transformer of the same text and size
ALIKE = 1.05  # times as many parameters, at most
TOP, MOST_MODELS, MOST_READ = 10, 6, 40
# Counted from the end, so that it stays at the end of a text that grows.
BACK = Slider("before_back", lambda view: 1 - len(view.encoding), 0, 0, label="before.place")


def _show_text(view: View, answer: Answer[Surprisals], place: int) -> None:
    found, size = answer.value, len(view.encoding)
    blank = [""]
    about = {
        t("before.bits"): [*("–" if np.isnan(bits) else f"{bits:.2f}" for bits in found.bits.tolist()), *blank],
        t("before.chance"): [*("–" if np.isnan(one) else f"{one:.2%}" for one in found.probability.tolist()), *blank],
        t("before.likeliest"): list(found.likeliest),
    }
    names = {name: t(f"before.{key}") for name, key in {"token": "character", "bits": "bits_axis"}.items()}
    words = names | {"bits_most": t("before.bits_most"), "unknown": t("before.bits_unknown")}
    strip = text_strip((*found.labels, "?"), [*found.bits.tolist(), np.nan], about, words, chosen=place)
    clickable(
        strip,
        answer,
        key="before_text",
        stem="before_surprise",
        label=t("before.strip_label"),
        on_place=lambda where: BACK.take(max(1, where) - size),
    )


def _show_place(view: View) -> None:
    """Show the text as a strip, and what is foreseen at one place of it."""
    text = ask_once(surprisals, prompt=view.prompt)
    strip, size = st.container(), len(view.encoding)
    place = size + BACK.show(view)
    with strip:
        _show_text(view, text, place)
    answer = ask_once(expected, prompt=view.prompt, place=place, top=TOP)
    bars, numbers = st.columns([3, 2], gap="large")
    with bars:
        show_drawing(expected_drawing(answer, key="before_expected", stem="before_next", label=t("before.next_label")))
    found = answer.value
    with numbers:
        end = view.encoding.offsets[place - 1][1]
        read = view.encoding.text[max(0, end - MOST_READ) : end]
        st.markdown(t("before.after", read=plain(read).replace("\n", " ⏎ ")))
        unsure, alike = st.columns(2)
        unsure.metric(t("before.entropy"), t("before.in_bits", bits=f"{found.entropy:.2f}"))
        alike.metric(t("before.alike_count"), f"{2**found.entropy:,.1f}")
        if found.came_id >= 0:
            values = {"bits": f"{found.came_bits:.2f}", "chance": f"{found.came_probability:.2%}"}
            st.markdown(t("before.came", came=plain(found.came), rank=found.came_rank, **values))
        if size > 1:
            shares = {"bits": f"{text.value.mean_bits:.2f}", "foreseen": text.value.foreseen, "count": size - 1}
            st.markdown(t("before.text_measured", **shares))


def _models(view: View) -> dict[str, Bundle]:
    """Return the language models to compare by keyword, all of one tokenizer: the view's, the others, a GPT."""
    names = [*model_names(None, ("lm",))]
    names += [BESIDE] if BESIDE in model_names(None, ("gpt",)) else []
    found: list[Bundle] = [view.bundle] if is_language_model(view) else []
    for name in names:
        if len(found) == MOST_MODELS:
            break
        try:
            one = open_bundle(name)
        except BundleError:
            continue  # a folder that does not tell its kind is listed, too
        first = next(iter(found), one)
        fits = one.kind in ("lm", "gpt") and one.tokenizer.to_json() == first.tokenizer.to_json()
        if fits and one.name not in [other.name for other in found]:
            found.append(one)
    return {f"model_{place}": one for place, one in enumerate(found)}


def _table(found: Foreseen) -> str:
    head = ("", t("before.nats_text"), t("before.share_foreseen"), t("before.nats_aside"), t("before.parameters"))
    rows = [
        (
            plain(name),
            f"**{found.nats[place]:.3f}**",
            f"{found.share[place]:.0%}",
            "–" if np.isnan(found.usual[place]) else f"{found.usual[place]:.3f}",
            f"{found.parameters[place]:,}",
        )
        for place, name in enumerate(found.models)
    ]
    return markdown_table(head, rows, right=4)


def sizes_of(parameters: np.ndarray) -> str:
    """Return whether models have "alike" many parameters, within 5 %, or numbers that are "apart"; (model,)."""
    return "alike" if parameters.max() <= ALIKE * parameters.min() else "apart"


def _compare(view: View) -> None:
    """Ask which model is surprised least by the text, and show all of them beside each other."""
    models = _models(view)
    if len(models) < 2:
        return
    if is_language_model(view):
        st.subheader(t("before.beside"), anchor=False)
    text = view.encoding.text
    n_tokens = min(len(view.encoding.text), *(one.config.max_len for one in models.values()))
    answer = ask_once(foreseen, text=text, n_tokens=n_tokens, **models)
    found = answer.value
    if found.n_tokens < 2:
        st.caption(t("before.too_short"))
        return
    options = {name: plain(name) for name in found.models}
    question = joined(t(f"before.sizes_{sizes_of(found.parameters)}"), section("before", "try_next"))
    cover = ask_first(question, options, name="before_best", about=text)
    best, worst = int(found.nats.argmin()), int(found.nats.argmax())
    values = {"best": f"{found.nats[best]:.2f}", "worst": f"{found.nats[worst]:.2f}"}
    measured = t("before.best_measured", name=plain(found.models[best]), other=plain(found.models[worst]), **values)
    cover.judge(found.models[best], measured)
    with cover.picture():
        said = {name: t(f"before.nats_{name}") for name in ("text", "aside", "aside_high")}
        said["nats"] = t("before.nats")
        chart = foreseen_bars(found.models, found.nats, found.usual, found.high, said)
        show_chart(chart, answer, key="before_beside", label=t("before.beside"))
        say(_table(found))
    data = next((name for name in found.data if name), "")
    if data:
        show_prose(section("before", "beside_note").format(data=corpus_word(data)), small=True)


def _offer_textbook(view: View) -> None:
    """Say how this model reads a character and how textbooks do, with the size of each; offer to train both."""
    model = view.bundle.model
    assert isinstance(model, RecurrentLm)
    found = textbook(vocab_size=model.config.vocab_size)
    values = {name: f"{count:,}" for name, count in (("one_hot", found.one_hot), ("embedded", found.embedded))}
    reads = "one_hot" if model.config.one_hot else "embedded"
    sizes = {"vocab": model.config.vocab_size, "units": UNITS}
    show_prose(joined(t(f"before.reads_{reads}"), t("before.textbook", **sizes, **values)), small=True)
    if st.button(t("before.textbook_train"), icon=":material/model_training:", type="tertiary", key="before_textbook"):
        open_page("train", {"lang": language(), "preset": RECURRENT_LM.name})


def _show(view: View) -> None:
    """Show the text with its surprise and the next character, then every language model on the same text."""
    if is_language_model(view):
        _show_place(view)
    else:
        offer_model(t("before.needs_lm", name=plain(view.bundle.name)), ("lm",))
    _compare(view)
    if is_language_model(view):
        _offer_textbook(view)


NEXT = Part("before", "next", _show, sites=("logits", *STATES), group="writes")
