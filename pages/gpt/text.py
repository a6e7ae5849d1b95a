"""The text of the GPT page: its strip of tokens, and the place in it that a part shows."""

from pages.figures.token_strip import text_strip
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing
from pages.kit.controls import Slider
from pages.kit.header import View, header
from pages.language import t
from transformer_core.analysis.gpt.next_token import Surprisals, surprisals

EXAMPLE = "Once upon a time, there was a little elephant who loved to"
TOP = 10
# Counted from the end, so that it stays at the end of a text that grows.
BACK = Slider("gpt_back", lambda view: 1 - len(view.encoding), 0, 0, label="gpt.place")


def header_of_gpt() -> View:
    """Show the header with the models that this page can run."""
    return header(kinds=("gpt",), example=EXAMPLE, chat=True)


def go_to(place: int, view: View) -> None:
    """Choose another place; only in a callback."""
    BACK.take(max(1, place) - len(view.encoding))


def strip_words() -> dict[str, str]:
    """Return the labels of a strip of tokens."""
    names = {"token": "token", "bits": "bits_axis", "bits_most": "bits_most", "unknown": "bits_unknown"}
    return {name: t(f"gpt.{key}") for name, key in names.items()}


def measured_text(view: View) -> Answer[Surprisals]:
    """Return each token's surprisal, probability and rank."""
    return ask_once(surprisals, prompt=view.prompt)


def strip_of(answer: Answer[Surprisals], place: int) -> Drawing:
    """Draw the text as a strip of its tokens, coloured by surprisal, with the chosen place."""
    found, blank = answer.value, [""]
    about = {
        t("gpt.bits"): [_number(bits, "{:.2f}") for bits in found.bits.tolist()] + blank,
        t("gpt.probability"): [_number(chance, "{:.2%}") for chance in found.probability.tolist()] + blank,
        t("gpt.rank"): [f"{rank:,}" if rank else "" for rank in found.rank.tolist()] + blank,
        t("gpt.likeliest"): list(found.likeliest),
    }
    strip = text_strip(
        (*found.labels, "?"),
        [*found.bits.tolist(), float("nan")],
        about,
        strip_words(),
        chosen=place,
    )
    label = t("gpt.strip_label")  # without a number: a chart whose label changes is mounted again
    return Drawing("gpt_text", strip, answer, "gpt_surprisal", label)


def _number(value: float, form: str) -> str:
    return form.format(value) if value == value else "–"
