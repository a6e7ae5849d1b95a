"""One step in a browser: a text, what it should have said, a step, a longer one, the link opened again, and undo."""

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from playwright.sync_api import Page, expect

from tests.helpers import PATIENCE
from tests.helpers.browser import rest, type_text, visit
from tests.helpers.reading import wait_link
from tests.helpers.tiny_runs import wait_for
from transformer_core import load
from transformer_core.analysis.learning.steps import after_step, walk
from transformer_core.prompt import Prompt
from transformer_core.training.runs.run_list import RunList

TEXT, NEAR, FAR = "A dull film, but a lovely end.", -6, 0
NOW, THEN = ("[data-number=one_step_before] [data-value]", "[data-number=one_step_after] [data-value]")


def test_the_loss_falls_as_the_engine_computes_and_a_link_gives_the_same_numbers(page: Page, address: str) -> None:
    visit(page, address, "one_step", lang="en", model="sentiment", one_step_class="0")
    type_text(page, TEXT)
    wait_link(page, text=TEXT)
    rest(page)
    bundle = load("sentiment")
    prompt = Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT)))
    about = {"prompt": prompt, "answer": 0, "rule": "adamw"}
    near = after_step(**about, taken=(), exponent=NEAR)
    expect(page.locator(NOW)).to_have_text(f"{near.before:.4f}")
    expect(page.locator(THEN)).to_have_text(f"{near.after:.4f}")
    page.locator(".st-key-one_step_take button").click()
    wait_link(page, one_step_taken=str(NEAR))
    losses = walk(prompt, 0, "adamw", (NEAR,)).losses
    assert losses[1] < losses[0]
    expect(page.locator(NOW)).to_have_text(f"{losses[1]:.4f}")
    thumb = page.get_by_role("slider").first
    thumb.focus()
    for _ in range(FAR - NEAR):
        thumb.press("ArrowRight")
    wait_link(page, one_step_rate=str(FAR))
    far = after_step(**about, taken=(NEAR,), exponent=FAR)
    expect(page.locator(THEN)).to_have_text(f"{far.after:.4f}")
    rest(page)
    link, shown = page.url, [page.locator(one).inner_text() for one in (NOW, THEN)]
    formula = page.locator(".st-key-formula_one_step_weight annotation").first.text_content()
    page.goto(link)
    rest(page)
    for one, text in zip((NOW, THEN), shown, strict=True):
        expect(page.locator(one)).to_have_text(text)
    assert page.locator(".st-key-formula_one_step_weight annotation").first.text_content() == formula
    page.locator(".st-key-one_step_undo button").click()
    expect(page.locator(NOW)).to_have_text(f"{near.before:.4f}")


@pytest.mark.nightly
def test_a_run_goes_on_from_the_weights_that_steps_by_hand_led_to(page: Page, address: str) -> None:
    chosen = {"model": "sentiment", "one_step_class": "0", "one_step_taken": str(NEAR), "one_step_rate": str(NEAR)}
    visit(page, address, "one_step", lang="en", text=TEXT, **chosen)
    page.locator(".st-key-one_step_train button").click()
    page.wait_for_url(re.compile(r"/train\?.*run="))
    run = parse_qs(urlsplit(page.url).query)["run"][0]
    store = RunList(Path(os.environ["VITRINE_RUNS"])).open(run)
    wait_for(lambda: store.status().state == "finished", PATIENCE)
    bundle = load("sentiment")
    prompt = Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT)))
    stepped = walk(prompt, 0, "adamw", (NEAR,)).before
    began, ended = (dict(store.model(frame).model.named_parameters()) for frame in (0, None))
    assert all(torch.equal(began[name], weight) for name, weight in stepped.items())
    assert any(not torch.equal(began[name], ended[name]) for name in stepped)
