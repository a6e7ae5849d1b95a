"""The way of a person who reads Chinese: a verdict on a typed sentence, a poem from a first line, a translation."""

import re

import torch
from playwright.sync_api import Page, expect

from pages.ui.language import words
from tests.helpers import ROOT
from tests.helpers.browser import type_text, visit
from transformer_core.analysis.gpt.continuation import written_on
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.generation import translate
from transformer_core.recipes.gpt_poem import in_form

SLOW = 40_000
ZH = words("zh")


def opened(name: str) -> Bundle:
    """Return a shipped bundle, read here and not by the app."""
    return load(ROOT / "assets" / "checkpoints" / name, device="cpu")


def verdict(bundle: Bundle, text: str, language: str) -> str:
    """Return the likelier class and its probability as the page writes them."""
    chances = bundle.model(torch.tensor([bundle.tokenizer.encode(text).ids])).softmax(-1)[0]
    best = int(chances.argmax())
    return f"{words(language)[f'class.{bundle.labels[best]}']} {float(chances[best]):.1%}"


def test_a_sentence_is_judged_and_another_language_is_offered_its_model(page: Page, address: str) -> None:
    visit(page, address, lang="zh")
    text = "这家店的面条一点也不好吃。"
    type_text(page, text)
    expect(page.get_by_text(verdict(opened("sentiment-zh"), text, "zh"))).to_be_visible(timeout=SLOW)
    english = "The film was not good at all."
    type_text(page, english)
    page.get_by_role("button", name=ZH["text.offer_en"].format(name="sentiment")).click()
    expect(page.get_by_text(verdict(opened("sentiment"), english, "zh"))).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("textbox").first).to_have_value(english)


def test_a_first_line_becomes_a_poem_and_the_rhyme_is_looked_at(page: Page, address: str) -> None:
    visit(page, address, "gpt", lang="zh", gpt_part="write")
    line, poet = "明月照孤舟，", opened("gpt-poem")
    type_text(page, line)
    rules = {"how": "sample", "temperature": 0.7, "top_k": None, "top_p": 0.9, "seed": 0, "choices": ()}
    found = written_on(bundle=poet, text=line, n_tokens=len(line), **rules, steps=64)
    assert in_form(line + found.written)
    expect(page.get_by_test_id("stCode").first).to_contain_text(line + found.written, timeout=SLOW)
    page.get_by_role("radio", name=ZH["gpt.part_verse"], exact=True).click()
    page.wait_for_url(re.compile("gpt_part=verse"), timeout=SLOW)
    said = ZH["gpt.verse_measured_rhyme"].partition("{places}")[2].partition("{head}")[0]
    expect(page.get_by_text(said)).to_be_visible(timeout=SLOW)


def test_a_chinese_sentence_is_translated(page: Page, address: str) -> None:
    visit(page, address, "translation", lang="zh")
    text = "我明天给你打电话。"
    type_text(page, text)
    (expected,) = translate(opened("translation-zh-en"), [text], width=1)
    strip = re.compile(".*".join(map(re.escape, re.findall(r"\w+", expected))), re.DOTALL)
    expect(page.locator("body")).to_contain_text(strip, timeout=SLOW)
