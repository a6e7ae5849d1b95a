"""One step: the gradient of a loss, the optimizer's step, the loss along it, and where gradients die."""

from pages.kit.header import header
from pages.kit.models import KINDS_OF_PAGE
from pages.one_step.dying import DYING
from pages.one_step.step import STEP
from pages.room import Page

SITES = ("*.residual", "*.weights", "*.activation")
ONE_STEP = Page("one_step", lambda: header(kinds=KINDS_OF_PAGE["one_step"]), (STEP, DYING), sites=SITES)

if __name__ == "__main__":
    ONE_STEP.show()
