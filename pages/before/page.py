"""Before Transformers: gates, states, predictions, attention, quality, gradients and times of recurrent models."""

from pages.before.forced import EXAMPLE
from pages.before.length import LENGTH
from pages.before.look import LOOK
from pages.before.memory import GATES, VECTOR
from pages.before.next import NEXT
from pages.before.one_step import STEP
from pages.before.reach import REACH
from pages.before.recurrent import STATES
from pages.before.time import TIME
from pages.glass.box import under_the_glass
from pages.kit.asking import ask_once
from pages.kit.header import View, header
from pages.room import Page
from transformer_core.analysis.before.alignments import words_read


def look_through(view: View, *, sites: tuple[str, ...]) -> None:
    """Show the box of tensors for the text, and for the translation that an encoder-decoder writes."""
    translates = view.bundle.kind == "seq2seq"
    under_the_glass(
        view, sites=sites, target_ids=(lambda: ask_once(words_read, prompt=view.prompt).value) if translates else None
    )


BEFORE = Page(
    "before",
    lambda: header(kinds=("seq2seq", "lm"), example=EXAMPLE),
    (GATES, STEP, NEXT, VECTOR, LOOK, LENGTH, REACH, TIME),
    sites=STATES,
    glass=look_through,
)

if __name__ == "__main__":
    BEFORE.show()
