"""The Lab in a browser: a head clicked off, a slider of strength, a log that comes back and opens its screens."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from pages.lab.outcome import signed_nats
from tests.helpers import ROOT
from tests.helpers.browser import BUNDLE, download, rest, settle, visit
from tests.helpers.pages import minus
from tests.helpers.reading import press, wait_link
from transformer_core import load
from transformer_core.analysis.lab.heads_off import compare_ablations, head_boards
from transformer_core.analysis.lab.healing import heal_spec
from transformer_core.analysis.lab.intervention import intervene, intervene_on_set, judged_continuations
from transformer_core.analysis.lab.patching import patch_map
from transformer_core.analysis.lab.weight_curve import weight_table
from transformer_core.analysis.lab.weights import matrices_of
from transformer_core.prompt import Prompt
from transformer_core.training.corpora.reviews import reviews
from transformer_core.training.spec import RunSpec

TEXT = "The film was not good."
NOTE_TEXTS = """
() => {
  window.drawnTexts = new Set();
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    drawnTexts.add(text);
    return fillText.call(this, text, ...place);
  };
}
"""  # what is written on canvases from now on
CHANGE = "[data-number=lab_change] [data-value]"


def opened(page: Page, address: str, part: str, **query: str) -> None:
    visit(page, address, "lab", lab_part=part, lang="en", **({"text": TEXT, "model": "sentiment"} | query))
    rest(page)


def test_two_quick_switches_are_both_kept_the_answer_is_the_engines_and_they_come_back(
    page: Page, address: str
) -> None:
    opened(page, address, "heads")
    expect(page.locator(CHANGE)).to_have_text("0")
    board = page.locator(".vm canvas").first
    press(page, board, "ArrowRight", "Enter", "ArrowRight", "Enter")
    changes = tuple(("head", "encoder.layer0.self_attention", head, "zero") for head in (1, 2))
    found = intervene(prompt=Prompt(BUNDLE, TEXT, len(BUNDLE.tokenizer.encode(TEXT))), changes=changes)
    said = page.locator("[data-number=lab_ln] [data-value]")
    expect(said).to_have_text(minus(f"{found.before:.2f} → {found.after:.2f}"))
    wait_link(page, lab_off="encoder.0.1-encoder.0.2")
    expect(said).to_have_text(minus(f"{found.before:.2f} → {found.after:.2f}"))
    press(page, board, "Enter", "ArrowLeft", "Enter")
    expect(page.locator(CHANGE)).to_have_text("0")
    wait_link(page, lab_off=None)


@pytest.mark.nightly
def test_a_slider_of_strength_moves_the_answer_as_the_engine_says(page: Page, address: str) -> None:
    opened(page, address, "steer", lab_source="classes")
    first = page.locator(CHANGE).inner_text()
    slider = page.locator("[data-testid=stSlider] input").first
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    change = ("steer", "encoder.layer1.residual", 1.3, ("classes", "", "", 0, -1), -1)
    n_tokens = len(BUNDLE.tokenizer.encode(TEXT))
    found = intervene(prompt=Prompt(BUNDLE, TEXT, n_tokens), changes=(change,))
    assert minus(f"{found.after - found.before:+.2f}") != first
    expect(page.locator(CHANGE)).to_have_text(minus(f"{found.after - found.before:+.2f}"))
    wait_link(page, lab_strength="1.3")
    assert page.locator(CHANGE).inner_text() == minus(f"{found.after - found.before:+.2f}")


@pytest.mark.nightly
def test_a_pasted_and_a_brought_set_give_the_number_of_the_engine(page: Page, address: str, tmp_path: Path) -> None:
    rows = (("A dull film.", 0), ("I loved it.", 1), ("Not my thing.", 1))
    changes = (("head", "encoder.layer3.self_attention", 3, "zero"),)
    opened(page, address, "heads", lab_off="encoder.3.3", lab_on_set="on")
    page.get_by_text("pasted", exact=True).click()
    expect(page.get_by_text("Nothing is pasted.")).to_be_visible()
    box = page.get_by_label(re.compile("A text a line"))
    box.fill("\n".join(f"{text}\t{BUNDLE.labels[label]}" for text, label in rows))
    box.press("Control+Enter")
    shown = page.locator("[data-testid=stMetric]").filter(has_text="right, as it is")
    found = intervene_on_set(bundle=BUNDLE, changes=changes, among=rows)
    expect(shown).to_contain_text(f"{found.accuracy[0]:.1%}")
    wait_link(page, lab_set="pasted")
    page.get_by_text("a file", exact=True).click()
    expect(page.get_by_text("bring the file again")).to_be_visible()
    file = tmp_path / "set.csv"
    file.write_text("label,text\n" + "\n".join(f"{1 - label},{text}" for text, label in rows), encoding="utf-8")
    page.locator("input[type=file]").set_input_files(file)
    other = intervene_on_set(bundle=BUNDLE, changes=changes, among=tuple((text, 1 - label) for text, label in rows))
    assert other.accuracy[0] != found.accuracy[0]
    expect(shown).to_contain_text(f"{other.accuracy[0]:.1%}")


def share_said(page: Page, name: str) -> str:
    """Return the share that a large number of this name shows, once it is there."""
    shown = page.locator("[data-testid=stMetric]").filter(has_text=name)
    expect(shown).to_be_visible()
    found = re.search(r"\d+\.\d%", shown.inner_text())
    assert found is not None
    return found[0]


def happier() -> float:
    """Return by how much steering from sad to happy moves what the classifier says of 20 continuations."""
    change_of_stream = ("steer", "decoder.layer1.residual", 2.0, ("texts", "so happy", "so sad", 0, -1), -1)
    gpt = load(ROOT / "assets/checkpoints/gpt", device="cpu")
    found = judged_continuations(
        prompt=Prompt(gpt, "Lily was", 20), changes=(change_of_stream,), judge=BUNDLE, label=1, count=20
    )
    return found.moved.moved


@pytest.mark.nightly
def test_six_questions_of_a_student_are_answered_on_the_page_with_the_engines_figures(page: Page, address: str) -> None:
    """Which heads for "not", zero against mean, where the difference travels, how many bits, prune and heal, steer."""
    prompt = Prompt(BUNDLE, TEXT, len(BUNDLE.tokenizer.encode(TEXT)))

    def answered(words: str) -> None:
        expect(page.get_by_text(words, exact=False).last).to_be_visible()

    def show_me(name: str) -> None:
        page.locator(f"[class*=st-key-ask_{name}]").get_by_role("radio").first.click()
        expect(page.locator(f"[class*=st-key-cover_{name}] i.covered")).to_have_count(0)

    change = head_boards(prompt=prompt).change["encoder"]
    layer, head = np.unravel_index(int(np.abs(change).argmax()), change.shape)
    opened(page, address, "heads", lab_off=f"encoder.{layer}.{head}", lab_on_set="on")
    expect(page.locator(CHANGE)).to_have_text(signed_nats(float(change[layer, head])))
    off = (("head", f"encoder.layer{layer}.self_attention", int(head), "zero"),)
    loss = intervene_on_set(bundle=BUNDLE, changes=off).loss
    moved, low, high = map(signed_nats, (loss.moved, loss.low, loss.high))
    answered(f"{moved} nats (95%: {low} to {high})")

    opened(page, address, "heads", lab_ways="on", lab_way="resample")
    show_me("lab_ways")
    ways = compare_ablations(prompt=prompt, how="resample")
    answered(minus(f"Over 32 heads the correlation is {ways.r:+.2f}"))

    other = "The film was very good."
    opened(page, address, "patch", lab_other=other)
    show_me("lab_patch")
    found = patch_map(prompt=prompt, other=prompt.with_text(other), stack="encoder")
    answered(minus(f"ln p {found.first:.2f} in the first text, {found.second:.2f} in the other"))

    opened(page, address, "weights", lab_table="on", lab_set="pasted", lab_pasted="A dull film.\tnegative")
    show_me("lab_flips")
    table = weight_table(prompt=prompt, operation="round", among=(("A dull film.", 0),))
    together = dict(zip(table.rows, table.held.tolist(), strict=True))["*"]
    answered(f"the answer turns first at round {table.strengths[together]:g}.")

    edits = [{"code": ["*", "prune", 0.9, 0, []], "on": True}]
    opened(page, address, "weights", lab_weights=json.dumps(edits), lab_heal="on", lab_heal_steps="10")
    page.get_by_role("button", name="Start healing").click()
    page.wait_for_url(re.compile(r"/train\?.*run="))
    answered(f"given the same 10 steps, reaches {share_said(page, 'Undamaged, trained as long')}")

    query = {"model": "gpt", "text": "Lily was", "lab_source": "texts", "lab_strength": "2.0", "lab_judged": "on"}
    opened(page, address, "steer", lab_first="so happy", lab_second="so sad", **query)
    box = page.get_by_text("Of 20 texts each, sentiment gives", exact=False)
    expect(box).to_be_visible()
    answered(minus(f"{100 * happier():+.1f} points"))


def place_in_matrix(page: Page, row: float, col: float) -> tuple[float, float]:
    """Return a place in the picture of a matrix, by shares of its height and width, once it is in the window."""
    canvas = page.locator(".vm canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    return box["x"] + box["width"] * col, box["y"] + box["height"] * row


def edits_in(page: Page) -> list[dict]:
    """Return the edits that the link has."""
    return json.loads(parse_qs(urlparse(page.url).query).get("lab_weights", ["[]"])[0])


@pytest.mark.nightly
def test_strokes_write_into_a_matrix_and_are_taken_back(page: Page, address: str) -> None:
    opened(page, address, "weights", lab_which="paint", lab_brush="1.5")
    expect(page.locator(CHANGE)).to_have_text("0")
    for row in (0.4, 0.6):
        page.mouse.move(*place_in_matrix(page, row, 0.3))
        page.mouse.down()
        page.mouse.move(*place_in_matrix(page, row, 0.7), steps=5)
        page.mouse.up()
    expect(page.get_by_text(re.compile("numbers painted, strokes: 2"))).to_be_visible()
    settle(page)
    ((value, ((row, _, height, width),)), (again, _)) = edits_in(page)[0]["code"][4]
    assert (value, again, height) == (1.5, 1.5, 1)
    assert width > 20
    changed = page.locator(CHANGE).inner_text()
    assert changed != "0"
    page.goto(page.url)
    rest(page)
    expect(page.locator(CHANGE)).to_have_text(changed)  # the link has the strokes
    page.get_by_role("button", name="Undo the last stroke").click()
    expect(page.get_by_text(re.compile("numbers painted, strokes: 1"))).to_be_visible()
    settle(page)
    page.mouse.click(*place_in_matrix(page, 0.5, 0.5))  # a stroke of one cell, after the page was opened anew
    expect(page.get_by_text(re.compile("strokes: 2"))).to_be_visible()
    settle(page)
    assert edits_in(page)[0]["code"][4][0][1][0][0] == row
    assert edits_in(page)[0]["code"][4][1][1][0][2:] == [1, 1]


@pytest.mark.nightly
def test_the_log_is_written_brought_back_and_opens_its_screen(page: Page, address: str, tmp_path: Path) -> None:
    edit = [{"code": ["encoder.stack.layers.0.self_attention.query_proj.weight", "zero", 0.0, 0, []], "on": True}]
    opened(page, address, "weights", lab_weights=json.dumps(edit))
    change = page.locator(CHANGE).inner_text()
    page.get_by_role("button", name="Write it into the log").click()
    expect(page.get_by_text("In the log: 1 row")).to_be_visible()
    page.get_by_text("Log", exact=True).click()
    settle(page)
    kept = download(page, page.get_by_role("button", name="JSON", exact=True), tmp_path)
    (row,) = json.loads(kept.read_text(encoding="utf-8"))
    assert abs(float(change.replace("−", "-")) - (row["after"] - row["before"])) < 6e-3
    visit(page, address, row["link"])
    rest(page)
    expect(page.locator(CHANGE)).to_have_text(change)
    opened(page, address, "log")
    page.locator("input[type=file]").set_input_files(kept)
    expect(page.get_by_text("Nothing written down yet")).to_have_count(0)
    expect(page.locator("[data-testid=stDataFrame]").first).to_be_visible()


def accuracy_on_reviews(spec: RunSpec) -> float:
    """Return the share of a run's held-out reviews whose label the shipped model finds, one after the other."""
    settings = {"train": spec.data.examples, "held_out": spec.data.held_out, "seed": spec.training.seed}
    right = []
    for example in reviews("en", **settings)[1]:
        with torch.inference_mode():
            scores = BUNDLE.model(torch.tensor([BUNDLE.tokenizer.encode(example.text).ids]))
        right.append(int(scores[0].argmax()) == example.label)
    return sum(right) / len(right)


@pytest.mark.nightly
def test_damaged_weights_heal_in_a_run_whose_film_has_the_undamaged_accuracy(page: Page, address: str) -> None:
    names = [f"encoder.stack.layers.{layer}.self_attention.value_proj.weight" for layer in range(4)]
    edits = [{"code": [name, "zero", 0.0, 0, []], "on": True} for name in names]
    opened(page, address, "weights", lab_weights=json.dumps(edits), lab_heal="on", lab_heal_steps="10")
    page.evaluate(NOTE_TEXTS)
    page.get_by_role("button", name="Start healing").click()
    page.wait_for_url(re.compile(r"/train\?.*run="))
    said = share_said(page, "Before the damage")
    changes = tuple(("weights", *edit["code"]) for edit in edits)
    assert float(said.rstrip("%")) == pytest.approx(
        100 * accuracy_on_reviews(heal_spec(BUNDLE, changes, steps=10)), abs=0.06
    )
    page.wait_for_function("said => drawnTexts.has(said)", arg=f"before the damage {said}")
    reached = share_said(page, "Undamaged, trained as long")
    expect(page.get_by_text(f"given the same 10 steps, reaches {reached}")).to_be_visible()


@pytest.mark.nightly
def test_how_many_bits_a_verdict_needs_is_one_picture_and_what_was_logged_outlives_a_reload(
    page: Page, address: str, tmp_path: Path
) -> None:
    query = {"lab_table": "on", "lab_set": "pasted", "lab_pasted": "A dull film.\tnegative\nI loved it.\tpositive"}
    opened(page, address, "weights", lab_matrix="*", **query)
    page.locator("[class*=st-key-ask_lab_flips]").get_by_role("radio").first.click()
    answer = page.locator("[class*=st-key-cover_lab_flips]")
    expect(answer.locator(".vm-canvas").first).to_be_visible()
    prompt = Prompt(BUNDLE, TEXT, len(BUNDLE.tokenizer.encode(TEXT)))
    found = weight_table(prompt=prompt, operation="round", among=(("A dull film.", 0), ("I loved it.", 1)))
    held = dict(zip(found.rows, found.held.tolist(), strict=True))
    first = f"{found.strengths[held['*']]:g}"
    expect(page.get_by_text(f"the answer turns first at round {first}.")).to_be_visible()
    expect(page.get_by_text(": encoder.embedding.token.", exact=False).last).to_be_visible()
    assert min((one for one in held.items() if not one[0].startswith("*")), key=lambda one: one[1])[0].startswith(
        "encoder.embedding"
    )

    page.get_by_role("button", name="Add", exact=True).click()
    rest(page)
    edits = tuple(("weights", name, "round", 3.0, 0, ()) for name in matrices_of(BUNDLE.model))
    effect = intervene(prompt=prompt, changes=edits)
    said = minus(f"{effect.before:.2f} → {effect.after:.2f}")
    expect(page.locator("[data-number=lab_ln] [data-value]")).to_have_text(said)
    page.get_by_role("button", name="Write it into the log").click()
    page.get_by_role("radio", name="Log", exact=True).click()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    page.reload()
    rest(page)
    rows = json.loads(download(page, page.get_by_role("button", name="JSON"), tmp_path).read_text(encoding="utf-8"))
    assert rows[-1]["after"] == pytest.approx(effect.after, abs=1e-4)
    assert len(json.loads(rows[-1]["changes"])) == len(edits)
