"""The experiment on training and use: each word after the right words, and after the decoder's own."""

from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Text
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View, shown_word
from pages.kit.number_format import markdown_table
from pages.kit.refusals import in_words, require_length
from pages.language import plain, section, strings, t
from pages.translation.figures.charts import forced_bars
from transformer_core.analysis.before.alignments import words_read
from transformer_core.analysis.before.forced_and_free import ForcedAndFree, forced_and_free

EXAMPLE = "A man in a red shirt is riding a horse."
RIGHT = "Un homme vêtu d'une chemise rouge fait du cheval."  # one of several right ones
MOST_CHARACTERS = 600


def _readable(view: View, target: str) -> Answer[ForcedAndFree]:
    require_length(target, MOST_CHARACTERS)
    with in_words():
        return ask_once(forced_and_free, prompt=view.prompt, target=target)


def _right(view: View) -> str:
    """Return a right translation of the example for a model that knows its words, else what the model writes."""
    if view.encoding.text == EXAMPLE and not any(view.bundle.tokenizer.encode(RIGHT).unknown):
        return RIGHT
    return view.bundle.tokenizer.decode(ask_once(words_read, prompt=view.prompt).value)


TARGET = Text("before_target", _right, label="before.forced_target", parse=_readable)


def _table(found: ForcedAndFree) -> str:
    head = [t(f"before.forced_{name}") for name in ("place", "right", "likeliest", "alone")]
    rows = [
        (str(place), *(plain(shown_word(word)) if word else "" for word in three))
        for place, three in enumerate(zip(found.words, found.favourites, found.free, strict=True))
    ]
    return markdown_table(head, rows, right=0)


@experiment("before_forced_open", "before.try_forced")
def try_forced(view: View) -> None:
    """Ask for a right translation and which of the two ways has more of its words; show both, word by word."""
    TARGET.show_box(view)
    answer = TARGET.note(view)
    if answer is None:
        return
    found = answer.value
    options = options_of("before.forced_{}", ("more", "alike", "fewer"))
    about = f"{view.name} {answer.arguments['target']}"
    cover = ask_first(section("before", "try_forced"), options, name="before_forced", about=about)
    gap = found.right - found.free_right
    measured = t("before.forced_measured", forced=found.right, free=found.free_right, count=len(found.words))
    leaves = t("before.forced_follows")
    if found.leaves >= 0:
        leaves = t("before.forced_leaves", place=found.leaves, word=plain(shown_word(found.words[found.leaves])))
    cover.judge("more" if gap > 0 else "fewer" if gap < 0 else "alike", f"{measured} {leaves}")
    with cover.picture():
        chart = forced_bars(
            found.words,
            found.probabilities,
            found.ranks,
            found.favourites,
            found.favourite_probabilities,
            strings("translation_forced"),
        )
        show_chart(chart, answer, key="before_forced", label=t("before.forced_label"))
        say(_table(found))
        say(section("before", "forced_after"), small=True)
