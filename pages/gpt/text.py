"""The text of the GPT page: its strip of tokens, and the place in it that a part shows."""

from pages.figures.token_strip import text_strip
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import Drawing
from pages.ui.header import View, header
from pages.ui.language import t
from pages.ui.url import forget, keep, slid, slide
from transformer_core.analysis.gpt.next_token import Surprisals, surprisals

EXAMPLE = "Once upon a time, there was a little elephant who loved to"
BACK = "gpt_back"  # counted from the end, so that it stays at the end of a text that grows
TOP = 10


def header_of_gpt() -> View:
    """Show the header with the models that this page can run."""
    return header(kinds=("gpt",), example=EXAMPLE)


def choose_place(view: View) -> int:
    """Show the slider of the place in the text, and return how many tokens come before it."""
    size = len(view.encoding)
    if size == 1:
        return 1
    return size + int(slide(t("gpt.place"), 1 - size, 0, name=BACK, default=0))


def chosen_place(view: View) -> int:
    """Return how many tokens come before the chosen place, without its slider."""
    size = len(view.encoding)
    return size + int(slid(1 - size, 0, name=BACK, default=0)) if size > 1 else 1


def go_to(place: int, size: int) -> None:
    """Choose another place; only in a callback."""
    forget(BACK)
    keep(BACK, str(max(1, place) - size), "0")


def strip_words() -> dict[str, str]:
    """Return the labels of a strip of tokens."""
    names = {"token": "token", "bits": "bits_axis", "bits_most": "bits_most", "unknown": "bits_unknown"}
    return {name: t(f"gpt.{key}") for name, key in names.items()}


def measured_text(view: View) -> Answer[Surprisals]:
    """Return each token's surprisal, probability and rank."""
    return ask_once(surprisals, **view.asked)


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
