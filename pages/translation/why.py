"""The page's part on why this word: the score of the word that a step writes, taken apart."""

from pages.kit.header import View
from pages.kit.live import show_lines
from pages.score.part import Asked, Score
from pages.translation.steps import STEP
from pages.translation.translated import STYLE, sentences, translated_so_far


def _asked(view: View) -> Asked:
    written = translated_so_far(view).value
    step = STEP.read(view)
    return {"prompt": view.prompt, "target_ids": written.token_ids[: step + 1], "place": step}


def _above(view: View) -> None:
    step = STEP.read(view)
    show_lines("translation", sentences(translated_so_far(view).value, step), style=STYLE)


WHY = Score("translation", "why", asked=_asked, above=_above, controls=(STEP,), beside=(STEP,)).part
