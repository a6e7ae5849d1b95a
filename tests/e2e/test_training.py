"""A run in the browser: started from any data and network, followed, stopped, found again, and opened elsewhere."""

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.helpers import nightly_but
from tests.helpers.browser import rest, settle, visit
from tests.helpers.reading import wait_link
from transformer_core.checkpoints import load
from transformer_core.training.runs.presets import PRESETS
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.runs.sweep import Sweep, outcome

DATA = "examples=256&held_out=64&frames=4&points=40&threads=1"
SMALL = f"{DATA}&epochs=2&d_model=16&n_heads=2&d_ff=16"
LONG = SMALL.replace("examples=256", "examples=2000").replace("epochs=2", "epochs=200")
RECURRENT = f"{DATA}&epochs=2&d_model=16"
TINY = "epochs=2&frames=2&points=40&d_model=16&n_heads=2&d_ff=16&n_layers=1&max_len=16&threads=1"
UNCUT = "(labels) => labels.every((label) => label.scrollWidth <= label.clientWidth)"
FOOD = ("noodle", "pepper", "saffron", "dumpling", "radish", "basil")
TRAVEL = ("harbour", "suitcase", "glacier", "tramway", "lagoon", "passport")
ROWS = [
    (f"{words[i % 6]} and {words[(i // 6) % 6]} number {i}", label)
    for i in range(60)
    for words, label in ((FOOD, "food"), (TRAVEL, "travel"))
]
TOLD = "my topics.csv, 120 rows, food / travel"


def start(page: Page, address: str, settings: str) -> str:
    """Start a run from a link and return its id, which is in the URL from then on."""
    page.goto(f"{address}/train?{settings}")
    return begun(page)


def begun(page: Page) -> str:
    """Press Start and return the run's id."""
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile(r"[?&]run="))
    return parse_qs(urlsplit(page.url).query)["run"][0]


def wait_finished(page: Page) -> None:
    """Wait until the page tells what the run came to and the film stands at its last frame."""
    expect(page.get_by_text("Held-out accuracy").first).to_be_visible()
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("frame 3 of 0 to 3"))


def test_a_run_is_watched_to_its_end_found_again_by_its_link_and_the_model_of_a_moment_opens(
    page: Page, address: str
) -> None:
    run = start(page, address, SMALL)
    wait_finished(page)
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("^step 16 "))
    page.get_by_role("slider").press("ArrowLeft")
    page.wait_for_url(re.compile("[?&]frame=2(&|$)"))
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("frame 2 of 0"))
    assert f"run={run}" in page.url
    other.set_viewport_size({"width": 390, "height": 844})
    labels = other.locator(".st-key-run_buttons button p")
    expect(labels).to_have_text(["New run", "Same settings", "Compare"])
    other.wait_for_function(UNCUT, arg=labels.element_handles())
    other.close()
    page.get_by_role("button", name="Open this moment's model").click()
    page.wait_for_url(re.compile("/attention"))
    settle(page)
    page.locator(".vm[data-painted]").first.wait_for()
    model = parse_qs(urlsplit(page.url).query)["model"][0]
    assert model.startswith(f"run:{run}@")
    expect(page.get_by_role("combobox", name="Model")).to_have_value(re.compile("^run: .*frame 2"))


@pytest.mark.nightly
def test_another_rate_leaves_the_tab_of_settings_where_it_is(page: Page, address: str) -> None:
    page.goto(f"{address}/train?{SMALL}&settings_open=on&lang=en")
    tab = page.get_by_role("tab", name="Optimiser")
    tab.click()
    rate = page.get_by_role("spinbutton", name="Highest learning rate")
    rate.fill("0.002")
    rate.press("Enter")
    page.wait_for_url(re.compile("learning_rate=0.002"))
    settle(page)
    expect(tab).to_have_attribute("aria-selected", "true")
    expect(rate).to_be_visible()


def fill(page: Page, label: str, value: str, written: str) -> None:
    """Write a number into a setting's box and wait until the link has it."""
    box = page.get_by_role("spinbutton", name=label)
    box.fill(value)
    box.press("Enter")
    page.wait_for_url(re.compile(re.escape(written)))
    settle(page)


@pytest.mark.nightly
def test_early_stopping_and_a_range_test_are_set_on_the_form_and_read_off_the_finished_runs(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/train?{SMALL}&settings_open=on&lang=en")
    page.get_by_role("tab", name="Run", exact=True).click()
    fill(page, "Early stopping: patience", "1", "patience=1")
    fill(page, "Early stopping: least improvement", "9", "min_improvement=9.0")
    early = begun(page)
    stopped = "Early stopping ended this run after step 8 of 16: 1 evaluation in a row on held-out examples brought no"
    expect(page.get_by_text(stopped)).to_be_visible()
    store = RunList(Path(os.environ["VITRINE_RUNS"])).open(early)
    losses = {frame.step: frame.measures["held_out_loss"] for frame in store.frames()}
    best = min(losses, key=losses.__getitem__)
    expect(page.get_by_text(f"{losses[best]:.3f} nats on 64 held-out examples")).to_be_visible()
    ridges = page.locator(".vf-ridges-canvas")
    expect(ridges).to_have_attribute("aria-label", re.compile("^Histograms by layer at step 8; .*encoder 0 0[.]"))
    page.get_by_role("slider").press("Home")
    expect(page.get_by_text("No step has been taken yet")).to_be_visible()
    expect(ridges).to_have_attribute("aria-label", re.compile("^Histograms by layer at step 0; "))

    page.goto(f"{address}/train?{SMALL}&batch_size=4&settings_open=on&lang=en")
    page.get_by_role("tab", name="Optimiser").click()
    page.get_by_text("Learning-rate range test", exact=True).first.click()
    page.wait_for_url(re.compile("range_test=on"))
    fill(page, "Range test: to", "100", "range_to=100.0")
    expect(page.get_by_role("spinbutton", name="Highest learning rate")).to_be_disabled()
    test = RunList(Path(os.environ["VITRINE_RUNS"])).open(begun(page))
    expect(page.get_by_text(re.compile("The mean loss falls")).first).to_be_visible()
    expect(page.get_by_text(re.compile("the run diverge")).first).to_be_visible()
    expect(page.get_by_text("learning rate", exact=True).first).to_be_visible()
    assert test.curves().learning_rate[0] == 1e-6
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_text(re.compile("the run diverge")).first).to_be_visible()
    other.close()


@pytest.mark.nightly
def test_a_run_is_told_on_every_page_stopped_and_taken_up_again_after_the_tab_was_closed(
    page: Page, address: str
) -> None:
    run = start(page, address, LONG)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_text("running").first).to_be_visible()
    page.get_by_role("button", name="Input").click()
    page.get_by_role("menuitem", name="Tokens").click()
    sign = page.locator(".uw")
    expect(sign).to_contain_text(re.compile(r"quick · 2000 examples.*step .* of 12,600"))
    other = page.context.new_page()
    other.goto(f"{address}/train?run={run}")
    other.get_by_role("button", name="Stop").click()
    expect(sign).to_contain_text("stopped")
    page.locator(".uw-open").click()
    page.wait_for_url(re.compile(f"/train.*run={run}"))
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(sign).to_be_hidden()
    page.goto("about:blank")
    again = other.get_by_role("button", name="Resume")
    again.click()
    other.get_by_role("button", name="Stop").click()
    expect(again).to_be_visible()


@pytest.mark.nightly
def test_compare_opens_while_the_list_of_runs_is_open_and_its_link_has_the_moment(page: Page, address: str) -> None:
    start(page, address, SMALL + "&seed=2")
    wait_finished(page)
    second = start(page, address, SMALL.replace("epochs=2", "epochs=3") + "&seed=2")
    wait_finished(page)
    page.get_by_text("Runs on this server").click()
    page.wait_for_url(re.compile("runs_open=on"))
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_url(re.compile("/compare"))
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("frame 3 of A, 3 of B"))
    assert parse_qs(urlsplit(page.url).query)["run"] == [second]
    slider.press("ArrowLeft")
    page.wait_for_url(re.compile("[?&]frame="))
    said = slider.get_attribute("aria-valuetext")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("slider")).to_have_attribute("aria-valuetext", said or "")


@pytest.mark.nightly
@pytest.mark.parametrize(("rung", "below", "here"), [("rms_norm", "LayerNorm", "RMSNorm"), ("mixture", "0", "8")])
def test_both_models_of_a_change_since_2017_are_trained_and_stand_side_by_side(
    page: Page, address: str, rung: str, below: str, here: str
) -> None:
    page.goto(f"{address}/since?since_rung={rung}&model=gpt&lang=en")
    settle(page)
    page.get_by_role("radio", name="lower loss").click()
    expect(page.get_by_text(re.compile(r"95 % interval .* 3 seeds"))).to_be_visible()
    page.get_by_role("button", name="Train both now").click()
    page.wait_for_url(re.compile("/compare"))
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("frame 23 of A, 23 of B"))
    settle(page)
    runs = [parse_qs(urlsplit(page.url).query)[name][0] for name in ("run", "other")]
    assert len(set(runs)) == 2
    expect(page.get_by_role("cell", name=below, exact=True).first).to_be_visible()
    expect(page.get_by_role("cell", name=here, exact=True).first).to_be_visible()


@pytest.mark.nightly
def test_a_sweep_is_started_stopped_gone_on_with_and_read_and_its_link_finds_its_runs(page: Page, address: str) -> None:
    base = start(page, address, SMALL)
    wait_finished(page)
    asked = "sweep_one=activation&sweep_one_values=relu,gelu&sweep_seeds=2&lang=en"
    page.goto(f"{address}/sweep?sweep_base={base}&{asked}")
    settle(page)
    page.get_by_role("button", name="Go on with 3 runs").click()  # the base itself is one of the four
    page.get_by_role("button", name=re.compile(r"Stop \d runs?")).click()
    expect(page.get_by_text(re.compile(r"[1-3] are missing or were stopped"))).to_be_visible()
    page.get_by_role("button", name=re.compile("Go on with")).click()
    expect(page.get_by_text("4 of 4 runs have finished")).to_be_visible()
    runs = RunList(Path(os.environ["VITRINE_RUNS"]))
    sweep = Sweep(runs.open(base).spec, {"activation": ("relu", "gelu")}, (0, 1))
    found = outcome(sweep, sweep.find(runs.all()))
    assert found.ended
    moved, low, high = (f"{100 * value:+.1f}".replace("-", "−") for value in found.difference(0, 1))
    expect(page.get_by_text(re.compile(f"{re.escape(moved)} points on average of 2 seeds"))).to_be_visible()
    expect(page.get_by_text(f"{low} to {high}")).to_be_visible()
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_text(f"{low} to {high}")).to_be_visible()
    other.close()
    page.get_by_role("button", name="Film of seed 1").click()
    page.wait_for_url(re.compile(f"/train.*run={found.runs[0][1]}"))
    wait_finished(page)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 120 rows, with labels and words that no data of the app have."""
    path = tmp_path_factory.mktemp("table") / "my topics.csv"
    path.write_text("\n".join(("words,topic", *(f"{text},{label}" for text, label in ROWS))), encoding="utf-8")
    return path


def choose_table(page: Page, table: Path) -> None:
    """Choose to learn from a file, and bring it."""
    expect(page.get_by_role("combobox", name="Learn from")).to_be_visible()
    settle(page)
    page.get_by_role("combobox", name="Learn from").click()
    page.get_by_role("option", name="a file of mine").click()
    page.locator("input[type=file]").first.set_input_files(table)
    expect(page.get_by_text("120 rows read")).to_be_visible()
    settle(page)


def finished(page: Page) -> RunStore:
    """Press Start, wait for the run's end, and return it from its folder."""
    run = begun(page)
    expect(page.locator(".vf-state")).to_contain_text("finished")
    return RunList(Path(os.environ["VITRINE_RUNS"])).open(run)


@pytest.mark.parametrize("preset", nightly_but(PRESETS, ["quick"]))
def test_a_table_is_what_is_learned_under_every_preset(page: Page, address: str, table: Path, preset: str) -> None:
    page.goto(f"{address}/train?preset={preset}&{TINY}")
    choose_table(page, table)
    expect(page.get_by_text(TOLD)).to_be_visible()
    store = finished(page)
    expect(page.get_by_text(TOLD).first).to_be_visible()
    expect(page.locator(".vf-legend").first).to_contain_text("food")
    expect(page.locator(".vf-legend").first).to_contain_text("travel")
    points = store.points()
    assert points is not None
    assert set(points.texts) <= {text for text, _ in ROWS}
    assert store.facts()["labels"] == ["food", "travel"]
    assert (store.spec.data.examples, store.spec.data.held_out) == (90, 30)
    bundle = load(store.folder / "bundle", device="cpu")
    assert bundle.labels == ("food", "travel")
    known = bundle.tokenizer.encode("noodle harbour").unknown
    assert not any(known)
    assert all(bundle.tokenizer.encode("masterpiece").unknown[1:-1]) or store.spec.data.tokenizer == "wordpiece"
    assert TOLD in bundle.card
    assert TOLD in (store.folder / "repeat.py").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_a_file_stays_what_is_learned_when_the_preset_changes_and_the_run_is_repeated(
    page: Page, address: str, table: Path
) -> None:
    page.goto(f"{address}/train")
    choose_table(page, table)
    page.get_by_role("radio", name="Real reviews").click()
    expect(page.get_by_text("with the settings of this preset")).to_be_visible()
    expect(page.get_by_text(TOLD)).to_be_visible()
    store = finished(page)
    assert store.spec.data.described == TOLD
    assert store.spec.name.startswith("my topics.csv")
    page.get_by_text("Runs on this server").click()
    expect(page.get_by_text(TOLD).nth(1)).to_be_visible()
    page.get_by_role("button", name="Same settings").click()
    expect(page.get_by_text(f"It learns from the data of that run: {TOLD}")).to_be_visible()
    page.wait_for_url(lambda url: "run=" not in url)
    again = finished(page)
    assert again.id != store.id
    assert again.spec.data == store.spec.data
    assert again.spec.name == f"{store.spec.name} (2)"


@pytest.mark.nightly
def test_a_model_of_today_is_put_together_on_the_form_trained_and_read(page: Page, address: str) -> None:
    page.goto(f"{address}/train?{TINY.replace('n_heads=2', 'n_heads=4')}&settings_open=true")
    page.get_by_role("tab", name="Since 2017").click()
    settle(page)
    page.get_by_role("combobox", name="Norm", exact=True).press("ArrowDown")
    page.get_by_role("option", name="RMSNorm").click()
    page.locator("[class*='st-key-gated'] label").first.click()
    for name, value in (("Heads of keys and values", "2"), ("Experts (0: one layer)", "3"), ("Experts a token", "1")):
        box = page.get_by_role("spinbutton", name=name)
        box.fill(value)
        box.press("Enter")
    wait_link(page, norm="rms_norm", gated="on", n_kv_heads="2", n_experts="3", n_active_experts="1")
    store = finished(page)
    config = load(store.folder / "bundle", device="cpu").config
    made = (config.norm, config.gated, config.kv_heads, config.n_experts, config.n_active_experts)
    assert made == ("rms_norm", True, 2, 3, 1)
    visit(page, address, "feed_forward", feed_forward_part="mixture", model=f"run:{store.id}", text="a dull film")
    rest(page)
    expect(page.locator(".vm-canvas").first).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)


@pytest.mark.nightly
def test_a_gru_learns_reviews_and_the_film_says_that_it_has_no_heads(page: Page, address: str) -> None:
    page.goto(f"{address}/train?{RECURRENT}&network=gru")
    expect(page.get_by_role("combobox", name="Network")).to_have_value("GRU")
    begun(page)
    wait_finished(page)
    expect(page.get_by_role("heading", name=re.compile("quick · .*gru"))).to_be_visible()
    film = page.locator(".vf")
    for label in ("negative", "positive"):
        expect(film.get_by_role("button", name=label)).to_be_visible()
        expect(film.locator(".vf-bars").get_by_text(label)).to_be_visible()
    expect(film.get_by_text("This network has no attention")).to_be_visible()
    expect(film.locator(".vf-heat:visible")).to_have_count(0)
    expect(page.get_by_text("A point is a review as this network keeps it in its state")).to_be_visible()


@pytest.mark.nightly
def test_a_recurrent_run_that_writes_shows_its_one_map_and_is_looked_through_on_its_page(
    page: Page, address: str
) -> None:
    settings = f"{RECURRENT}&network=lstm&source=reverse&length=5&max_len=16&alignment=dot_product"
    run = start(page, address, settings)
    wait_finished(page)
    letters = page.get_by_label("Type letters")
    letters.fill("a b c d")
    letters.press("Enter")
    film = page.locator(".vf")
    expect(film.locator(".vf-heat-single canvas").first).to_be_visible()
    expect(film.get_by_text("This network has no attention")).to_be_hidden()
    page.goto(f"{address}/before?model=run:{run}&before_part=look&text=a b c d")
    expect(page.get_by_text("by the dot product")).to_be_visible()
    expect(page.locator("[data-painted]").first).to_be_visible()


@pytest.mark.nightly
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
    expect(page.get_by_text("30 different pairs read")).to_be_visible()
    begun(page)
    wait_finished(page)
    sentence = page.get_by_label("Type a sentence and follow its translation")
    sentence.fill("three birds")
    sentence.press("Enter")
    expect(page.locator(".vf-samples-list li").last).to_contain_text("trois oiseaux")
    expect(page.locator(".vf-heat-single canvas, .vf-heat canvas").first).to_be_visible()
    expect(page.get_by_text("of the words in sentences that it never saw")).to_be_visible()
