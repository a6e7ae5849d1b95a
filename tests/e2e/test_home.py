"""What Home says of a sentence is what the model computes: typed, read back from the screen, and clicked."""

import re

from playwright.sync_api import Page, expect

from tests.helpers.browser import BUNDLE, type_text, visit
from transformer_core.analysis.counter_examples import counter_examples
from transformer_core.analysis.outcome import one_text
from transformer_core.text.encoding import words_of

TEXT = "The story was dull, but the music was lovely."


def without(word: int) -> float:
    """Return what the likeliest class of TEXT loses when one of its words is hidden, computed without the page."""
    encoding = BUNDLE.tokenizer.encode(TEXT)
    ids = one_text(BUNDLE, encoding)
    hidden = ids.clone()
    hidden[0, list(words_of(encoding)[word].places)] = BUNDLE.tokenizer.mask_id
    whole, rest = (BUNDLE.model(each).softmax(-1)[0] for each in (ids, hidden))
    return float(whole.max() - rest[whole.argmax()])


def test_a_typed_sentence_is_explained_and_one_click_turns_it(page: Page, address: str) -> None:
    visit(page, address)
    type_text(page, TEXT)
    words = page.locator(".tinted [role=listitem]")
    expect(words.first).to_have_text(re.compile("^The"), timeout=20_000)
    worth = [without(word) for word in range(words.count())]
    names = [word.inner_text().split("\n")[0] for word in words.all()]
    said = [word.get_attribute("aria-label") or "" for word in words.all()]
    assert all(f"{100 * each:+.1f} points" in there for each, there in zip(worth, said, strict=True))
    most = names[worth.index(max(worth))]
    sentence = page.get_by_text(re.compile(r"pushed towards (positive|negative) by"))
    expect(sentence).to_contain_text(f"{most} pushed towards")
    expect(sentence).to_contain_text(f"by {round(100 * max(worth))} points")

    found = counter_examples(bundle=BUNDLE, text=TEXT, n_tokens=len(BUNDLE.tokenizer.encode(TEXT))).found[0]
    page.get_by_role("button", name=re.compile(re.escape(found.new))).first.click()
    expect(page.get_by_role("textbox").first).to_have_value(found.text)
    turned = f"{BUNDLE.labels[found.winner]} {found.probability:.1%}"
    expect(page.locator("span[style*='text-stroke:0.5px']")).to_have_text(re.compile(re.escape(turned)), timeout=20_000)


def test_the_classifier_in_the_diagram_opens_the_encoder_page(page: Page, address: str) -> None:
    visit(page, address, text=TEXT)
    page.locator("[data-part=classifier]").click()
    page.wait_for_url(re.compile("/encoder.*encoder_part=sum"))
    expect(page.get_by_role("heading", name="Encoder")).to_be_visible(timeout=20_000)
