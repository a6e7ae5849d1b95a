"""The page's part on why this token: the score of the next one, taken apart at the chosen place."""

from pages.gpt.text import BACK
from pages.kit.header import View
from pages.score.part import Asked, Score


def _asked(view: View) -> Asked:
    return {"prompt": view.prompt, "place": len(view.encoding) + BACK.read(view)}


WHY = Score("gpt", "why", asked=_asked, controls=(BACK,), beside=(BACK,)).part
