"""A run of a recurrent network in the browser: started from the form, watched to its end, its labels read."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.test_train import A_MINUTE, start, wait_finished

SMALL = "examples=256&held_out=64&epochs=2&frames=4&points=40&d_model=16&threads=1&network=gru"


def test_a_gru_learns_reviews_and_the_film_says_that_it_has_no_heads(page: Page, address: str) -> None:
    page.goto(f"{address}/train?{SMALL}")
    expect(page.get_by_role("combobox", name="Network")).to_have_value("GRU", timeout=A_MINUTE)
    start(page, address, SMALL)
    wait_finished(page)
    expect(page.get_by_role("heading", name=re.compile("quick · .*gru"))).to_be_visible()
    film = page.locator(".vf")
    for label in ("negative", "positive"):
        expect(film.get_by_role("button", name=label)).to_be_visible(timeout=A_MINUTE)
        expect(film.locator(".vf-bars").get_by_text(label)).to_be_visible(timeout=A_MINUTE)
    expect(film.get_by_text("This network has no attention")).to_be_visible(timeout=A_MINUTE)
    expect(film.locator(".vf-heat:visible")).to_have_count(0)
    expect(page.get_by_text("A point is a review as this network keeps it in its state")).to_be_visible()


def test_a_recurrent_run_that_writes_shows_its_one_map(page: Page, address: str) -> None:
    start(page, address, SMALL.replace("gru", "lstm") + "&source=reverse&length=5&max_len=16")
    wait_finished(page)
    letters = page.get_by_label("Type letters")
    letters.fill("a b c d")
    letters.press("Enter")
    film = page.locator(".vf")
    expect(film.locator(".vf-heat-single canvas").first).to_be_visible(timeout=A_MINUTE)
    expect(film.get_by_text("This network has no attention")).to_be_hidden()


def test_a_run_with_the_dot_product_is_looked_through_on_the_page_of_recurrent_models(page: Page, address: str) -> None:
    start(page, address, SMALL + "&source=reverse&length=5&max_len=16&alignment=dot_product")
    wait_finished(page)
    run = re.search(r"run=([^&]+)", page.url)
    assert run is not None
    page.goto(f"{address}/before?model=run:{run[1]}&before_part=look&text=a b c d")
    expect(page.get_by_text("by the dot product")).to_be_visible(timeout=A_MINUTE)
    expect(page.locator("[data-painted]").first).to_be_visible(timeout=A_MINUTE)


def test_a_small_translation_is_learned_from_pasted_pairs_and_read_back_from_the_film(page: Page, address: str) -> None:
    numbers = ["one|un", "two|deux", "three|trois", "four|quatre", "five|cinq", "six|six"]
    things = ["dogs|chiens", "cats|chats", "birds|oiseaux", "cows|vaches", "cars|voitures"]
    pairs = [" | ".join(map(" ".join, zip(n.split("|"), t.split("|"), strict=True))) for n in numbers for t in things]
    page.goto(
        f"{address}/train?preset=pairs&d_model=32&examples=100&held_out=2&epochs=60&batch_size=8&frames=4&threads=1"
    )
    box = page.get_by_label("Your own pairs (optional)")
    box.fill("\n".join(pairs))
    box.press("Control+Enter")
    expect(page.get_by_text("30 different pairs read")).to_be_visible(timeout=A_MINUTE)
    page.get_by_role("button", name="Start training").click()
    wait_finished(page)
    sentence = page.get_by_label("Type a sentence and follow its translation")
    sentence.fill("three birds")
    sentence.press("Enter")
    expect(page.locator(".vf-samples-list li").last).to_contain_text("trois oiseaux", timeout=A_MINUTE)
    expect(page.locator(".vf-heat-single canvas, .vf-heat canvas").first).to_be_visible(timeout=A_MINUTE)
    expect(page.get_by_text("of the words in sentences that it never saw")).to_be_visible()
