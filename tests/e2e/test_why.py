"""A person's way through "Why this token?": a head, a token of it, a neuron, back, and the same link once more."""

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import settle, visit
from tests.helpers.engine import shipped
from tests.helpers.reading import wait_link
from transformer_core.analysis.stream.score_sum import ScoreSum, likeliest, score_sum
from transformer_core.prompt import Prompt

TEXT = "Once upon a time, there was a little dog who loved to"


def found(answer: int | None = None, opened: str = "") -> ScoreSum:
    bundle = shipped("gpt")
    prompt = Prompt(bundle, TEXT, 64)
    return score_sum(prompt=prompt, place=len(prompt.encoding), answer=answer, opened=opened)


def shows(page: Page, number: float) -> None:
    expect(page.locator(".katex-html").filter(has_text=f"{abs(number):.4f}").first).to_be_visible()


def strongest(of: ScoreSum, kind: str) -> str:
    """Return the head or the feed-forward layer with the largest share."""
    names = [name for name in of.names if name.startswith("layer") and "bias" not in name and kind in name]
    return max(names, key=lambda name: abs(of.values[of.names.index(name)]))


@pytest.mark.nightly
def test_a_word_is_chosen_and_its_parts_are_opened_one_in_another_and_back(page: Page, address: str) -> None:
    second = found(likeliest(prompt=Prompt(shipped("gpt"), TEXT, 64)).numbers[1].item())
    visit(page, address, "gpt", gpt_part="why", text=TEXT, score_word=str(second.answer))
    shows(page, second.total)
    head, layer = strongest(second, "head"), strongest(second, "feed_forward")
    token = f"{head}.token{int(np.abs(score_sum_tokens(second, head)).argmax())}"
    neuron = f"{layer}.neuron{int(np.abs(found(second.answer, layer).openings[0].values).argmax())}"
    for code in (head, token, layer, neuron):
        visit(page, address, "gpt", gpt_part="why", text=TEXT, score_word=str(second.answer), score_open=code)
        for opening in found(second.answer, code).openings:
            shows(page, opening.share)
    page.reload()
    settle(page)
    for opening in found(second.answer, neuron).openings:
        shows(page, opening.share)
    page.get_by_role("button", name=re.compile("all parts")).click()
    expect(page.get_by_text("which layer adds most").first).to_be_visible()
    expect(page).not_to_have_url(re.compile("score_open"))
    wait_link(page, score_word=str(second.answer))


def score_sum_tokens(of: ScoreSum, head: str) -> np.ndarray:
    """Return the shares of the tokens that a head read."""
    opening = found(of.answer, head).openings[0]
    return opening.values[: len(opening.labels)]
