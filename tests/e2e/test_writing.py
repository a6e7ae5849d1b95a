"""One way through each room of the models that write or fill in: what stands there is what the library computes."""

import re
from functools import cache

import pytest
import torch
from playwright.sync_api import Page, expect

from pages.kit.number_format import percent
from pages.language import words
from tests.helpers import ROOT
from tests.helpers.browser import rest, settle, type_text, visit, wait_painted
from tests.helpers.reading import metric, open_part, press, wait_link
from transformer_core.analysis.before.alignments import both_alignments, compared
from transformer_core.analysis.before.gates import gates_of_sentence
from transformer_core.analysis.bert.masked_words import fill_in
from transformer_core.analysis.bert.sentence_pairs import pair_verdict
from transformer_core.analysis.gpt.continuation import written_on
from transformer_core.analysis.translation.greedy_steps import written_greedily
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.generation import translate
from transformer_core.prompt import Prompt
from transformer_core.recipes.gpt_poem import in_form

RULES = {"how": "sample", "temperature": 0.7, "top_k": None, "top_p": 0.9, "seed": 0}
ZH = words("zh")


@cache
def opened(name: str) -> Bundle:
    """Return a shipped bundle, read here and not by the app."""
    return load(ROOT / "assets" / "checkpoints" / name, device="cpu")


def asked(name: str, text: str) -> dict:
    """Return the arguments that every question about a text has."""
    return {"prompt": Prompt(opened(name), text, len(opened(name).tokenizer.encode(text)))}


def test_a_step_is_scrubbed_to_and_a_click_on_a_small_map_shows_that_head_large(page: Page, address: str) -> None:
    text = "A dog runs on the beach."
    written = written_greedily(**asked("translation-en-fr", text))
    visit(page, address, "translation", text=text, translation_step="2")
    expect(page.get_by_text(f"with a probability of {written.probabilities[2]:.2%}")).to_be_visible()
    page.get_by_role("slider").first.press("ArrowLeft")
    expect(page.get_by_text(f"with a probability of {written.probabilities[1]:.2%}")).to_be_visible()
    wait_link(page, translation_step="1")
    wait_painted(page, f"rows 0.1|{text}")
    open_part(page, "translation", "cross")
    wait_painted(page, f"all|0|{text}")
    press(page, page.locator(".vm-canvas").nth(1), "PageDown", "Enter")
    wait_painted(page, f"weights|0.1|{text}")
    wait_link(page, translation_over="head")


@pytest.mark.nightly
def test_chips_hide_words_a_mask_is_typed_and_the_sentences_swap_places(page: Page, address: str) -> None:
    text, second = "A man in a red shirt is riding a horse.", "Two dogs run on the beach."
    known = asked("bert", text)
    red = known["prompt"].encoding.labels.index("red")
    visit(page, address, "bert", text=text, bert_second=second)
    for word in ("horse", "red"):
        page.get_by_test_id("stButtonGroup").get_by_role("button", name=word, exact=True).click()
    wait_link(page, bert_hidden=str(red))
    found = fill_in(**known, hidden=(red,))
    expect(metric(page, "True word")).to_have_text("red")
    expect(metric(page, "Its probability")).to_have_text(percent(found.true_probabilities[0]))
    expect(metric(page, "Its rank")).to_have_text(f"{found.true_ranks[0]:,}")
    type_text(page, text.replace("red", "[MASK]"))
    told = page.get_by_text("This mask was typed")
    expect(told).to_be_visible()
    type_text(page, text)
    expect(told).to_have_count(0)
    settle(page)

    open_part(page, "bert", "pair")
    pair = pair_verdict(prompt=Prompt(opened("bert"), text, min(128, opened("bert").config.max_len), second))
    expect(page.get_by_text(f"{pair.follows[0]:.1%}").first).to_be_visible()
    page.get_by_role("button", name="Swap A and B").click()
    expect(page.get_by_role("textbox").first).to_have_value(second)
    expect(page.get_by_role("textbox").nth(1)).to_have_value(text)
    expect(page.get_by_text(f"{pair.follows[1]:.1%}").first).to_be_visible()
    settle(page)


@pytest.mark.nightly
def test_gates_are_shown_both_ways_and_two_models_look_at_one_sentence(page: Page, address: str) -> None:
    text = "A dog is running on the white beach."
    known = asked("seq2seq-en-fr", text)
    visit(page, address, "before", text=text)
    wait_painted(page, f"forward|True|{text}")
    kept = gates_of_sentence(**known).kept.mean(1)[1:-1]
    expect(page.get_by_text(f"{kept.min():.0%}", exact=True).first).to_be_visible()
    page.get_by_role("radio", name="backward").click()
    wait_painted(page, f"backward|True|{text}")
    wait_link(page, before_direction="backward")
    open_part(page, "before", "look")
    both = both_alignments(other=opened("translation-en-fr"), **known)
    for translation in (both.own, both.others):
        expect(page.get_by_text(translation, exact=True).first).to_be_visible()
    _, agree = compared(both.bundle.weights[0], both.other.by_head.mean((0, 1)))
    expect(page.get_by_text(f"{float(agree):.0%}", exact=True).first).to_be_visible()
    wait_painted(page, f"same|all0.0|{text}")


@pytest.mark.nightly
def test_a_token_is_written_and_another_put_in_its_place(page: Page, address: str) -> None:
    known = asked("gpt-char", "The king is")
    visit(page, address, "gpt", text=known["prompt"].text, model="gpt-char", gpt_part="write", gpt_steps="4")
    shown = page.get_by_test_id("stCode").first
    free = written_on(**known, **RULES, choices=(), steps=5)
    page.get_by_role("button", name="One token").click()
    expect(shown).to_contain_text(free.written.strip().split("\n")[-1])
    wait_link(page, gpt_steps="5")
    step = free.steps[4]
    other = next(place for place, id_ in enumerate(step.top_ids) if id_ != step.token_id)
    page.get_by_role("radio", name=re.compile(rf"^{re.escape(step.top_labels[other])} \d")).click()
    wait_link(page, gpt_choices=f"4.{step.top_ids[other]}")
    put = written_on(**known, **RULES, choices=((4, step.top_ids[other]),), steps=5)
    expect(shown).to_contain_text(put.written.strip().split("\n")[-1])


def verdict(name: str, text: str, language: str) -> str:
    """Return the likelier class and its probability as the page writes them."""
    probabilities = opened(name).model(torch.tensor([opened(name).tokenizer.encode(text).ids])).softmax(-1)[0]
    best = int(probabilities.argmax())
    return f"{words(language)[f'class.{opened(name).labels[best]}']} {float(probabilities[best]):.1%}"


def test_a_chinese_sentence_is_judged_and_another_language_is_offered_its_model(page: Page, address: str) -> None:
    visit(page, address, lang="zh")
    text = "这家店的面条一点也不好吃。"
    type_text(page, text)
    expect(page.get_by_text(verdict("sentiment-zh", text, "zh"))).to_be_visible()
    english = "The film was not good at all."
    type_text(page, english)
    page.get_by_role("button", name=ZH["text.offer_en"].format(name="sentiment")).click()
    expect(page.get_by_text(verdict("sentiment", english, "zh"))).to_be_visible()
    expect(page.get_by_role("textbox").first).to_have_value(english)


@pytest.mark.nightly
def test_a_first_line_becomes_a_poem_and_the_rhyme_is_looked_at(page: Page, address: str) -> None:
    visit(page, address, "gpt", lang="zh", gpt_part="write")
    text = "明月照孤舟，"
    type_text(page, text)
    found = written_on(prompt=Prompt(opened("gpt-poem"), text, len(text)), **RULES, choices=(), steps=64)
    assert in_form(text + found.written)
    expect(page.get_by_test_id("stCode").first).to_contain_text(text + found.written)
    open_part(page, "gpt", "verse", "zh")
    said = ZH["gpt.verse_measured_rhyme"].partition("{places}")[2].partition("{head}")[0]
    expect(page.get_by_text(said)).to_be_visible()
    rest(page)


@pytest.mark.nightly
def test_a_chinese_sentence_is_translated(page: Page, address: str) -> None:
    visit(page, address, "translation", lang="zh")
    text = "我明天给你打电话。"
    type_text(page, text)
    (expected,) = translate(opened("translation-zh-en"), [text], width=1)
    strip = re.compile(".*".join(map(re.escape, re.findall(r"\w+", expected))), re.DOTALL)
    expect(page.locator("body")).to_contain_text(strip)
