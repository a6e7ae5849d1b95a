"""What stands on the page on recurrent models is what they compute: read back from the screen."""

import re

import pytest
from playwright.sync_api import Page, expect

from pages.ui.models import model_folders
from pages.ui.number_format import significant
from tests.helpers.browser import visit, wait_painted
from transformer_core.analysis.before.alignments import both_alignments, compared, word_alignment
from transformer_core.analysis.before.beside import timed_translation
from transformer_core.analysis.before.by_length import by_length
from transformer_core.analysis.before.gates import gates_of_sentence
from transformer_core.analysis.before.reach import gradient_reach
from transformer_core.analysis.gpt.next_token import expected
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

TEXT = "A dog is running on the white beach."
NAMES = ("seq2seq-en-fr", "translation-en-fr")
pytestmark = pytest.mark.skipif(
    not set(NAMES) <= model_folders().keys(), reason="the recurrent translator or the Transformer beside it is not here"
)


@pytest.fixture(scope="module")
def bundles() -> tuple[Bundle, Bundle]:
    """The shipped recurrent translator, and the Transformer of the same tokens."""
    old, new = (load(model_folders()[name], device="cpu") for name in NAMES)
    return old, new


def asked(bundle: Bundle) -> dict:
    """Return what the page asks the library with."""
    return {"bundle": bundle, "text": TEXT, "n_tokens": len(bundle.tokenizer.encode(TEXT))}


def test_the_first_screen_shows_gates_and_what_is_kept(page: Page, address: str, bundles) -> None:
    visit(page, address, "before", text=TEXT)
    found = gates_of_sentence(**asked(bundles[0]))
    wait_painted(page, f"forward|True|{TEXT}")
    kept = found.kept.mean(1)[1:-1]
    expect(page.get_by_text(f"{kept.min():.0%}", exact=True).first).to_be_visible()
    page.get_by_role("radio", name="backward").click()
    wait_painted(page, f"backward|True|{TEXT}")
    page.wait_for_url(re.compile("before_direction=backward"))


def test_two_models_look_at_one_sentence(page: Page, address: str, bundles) -> None:
    visit(page, address, "before", text=TEXT, before_part="look")
    both = both_alignments(other=bundles[1], **asked(bundles[0]))
    for translation in (both.own, both.others):
        expect(page.get_by_text(translation, exact=True).first).to_be_visible(timeout=20_000)
    _, agree = compared(both.bundle.weights[0], both.other.by_head.mean((0, 1)))
    expect(page.get_by_text(f"{float(agree):.0%}", exact=True).first).to_be_visible()
    wait_painted(page, f"same|all0.0|{TEXT}")


def test_where_a_word_came_from_is_predicted_first(page: Page, address: str, bundles) -> None:
    probe = "A boy is playing in the snow."
    visit(page, address, "before", text=TEXT, before_part="look", before_look_open="true", before_probe=probe)
    found = word_alignment(bundle=bundles[0], text=probe, n_tokens=64)
    step = max(range(len(found.target)), key=lambda place: len(found.target[place]))
    row = found.weights[0, step]
    place = int(row.argmax())
    name = re.compile(rf"^{place} · ")
    page.get_by_role("radio", name=name).click()
    expect(page.get_by_text("As you predicted.")).to_be_visible(timeout=20_000)
    expect(page.get_by_text(f"{row[place]:.2f}", exact=True).first).to_be_visible()


def test_a_longer_reach_is_measured_and_in_the_link(page: Page, address: str) -> None:
    visit(page, address, "before", text=TEXT, before_part="reach", before_length="16", before_width="16")
    found = gradient_reach(length=16, d_model=16, seed=0, keep_bias=2.0)
    expect(page.get_by_role("cell", name=significant(found.relative[1, -1]), exact=True).first).to_be_visible(
        timeout=20_000
    )
    page.get_by_role("radio", name="32", exact=True).click()
    wider = gradient_reach(length=16, d_model=32, seed=0, keep_bias=2.0)
    expect(page.get_by_role("cell", name=significant(wider.relative[1, -1]), exact=True).first).to_be_visible(
        timeout=20_000
    )
    page.wait_for_url(lambda url: "before_width" not in url)


def test_three_models_translate_the_sentence_after_the_question(page: Page, address: str) -> None:
    visit(page, address, "before", text=TEXT, before_part="length")
    found = by_length(name="length_en_fr")
    for name in found.models:
        written = timed_translation(bundle=load(model_folders()[name], device="cpu"), text=TEXT).text
        expect(page.get_by_role("cell", name=written, exact=True).first).to_be_visible(timeout=20_000)
    page.get_by_role("radio", name=found.models[int(found.lost.argmax())], exact=True).click()
    expect(page.get_by_text("As you predicted.")).to_be_visible(timeout=20_000)


def test_a_place_in_the_text_shows_what_was_expected_there(page: Page, address: str) -> None:
    visit(page, address, "before", model="lm-gru", text=TEXT, before_part="next")
    asked = {"bundle": load(model_folders()["lm-gru"], device="cpu"), "text": TEXT, "n_tokens": len(TEXT)}
    bits = expected(**asked, place=len(TEXT) - 1, top=10).came_bits
    page.locator("[data-testid=stSlider] input").first.press("ArrowLeft")
    expect(page.get_by_text(f"{bits:.2f} bits", exact=True).first).to_be_visible(timeout=20_000)
