"""The masks page shows the numbers that the library computes, and answers odd links in words."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch

from pages.kit.asking import Answer, ask
from pages.kit.experiment import covered
from pages.language import words
from pages.masks.batch import CHARACTERS
from tests.helpers import pages
from tests.helpers.browser import BUNDLE
from tests.helpers.pages import asks, matrices, minus, repeats, run, told
from transformer_core.analysis.masks.batch_masks import batch_masks
from transformer_core.analysis.masks.codes import painted_code
from transformer_core.analysis.masks.masked_head import masked_head
from transformer_core.analysis.masks.mixed_masks import mixed_masks
from transformer_core.analysis.masks.training_without_mask import Cheating, mask_cheating
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending."
STRANGE = ("好 🙂 مرحبا", "[PAD]", "good film " * 100, "x")
SIZE = len(BUNDLE.tokenizer.encode(TEXT))


def masked(mask: str, **changes):
    arguments = {"pads": 0, "layer": 0, "head": 0, "everywhere": True} | changes
    return masked_head(prompt=Prompt(BUNDLE, TEXT, SIZE), mask=mask, **arguments)


def metrics(app) -> list[str]:
    return list(pages.metrics(app).values())


def press(app, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()


def moved(found) -> str:
    first = int(found.before.argmax())
    return minus(f"{100 * (found.after[first] - found.before[first]):+.1f}")


@pytest.mark.parametrize(
    ("preset", "language"),
    [
        ("everything", "en"),
        ("causal", "zh"),
        ("padding", "en"),
        ("window", "zh"),
        ("prefix", "en"),
        ("painted", "zh"),
    ],
)
def test_every_preset_is_shown_with_its_own_numbers(preset: str, language: str) -> None:
    app = run("masks", lang=language, text=TEXT, masks_preset=preset, masks_window="1", masks_prefix="3")
    assert not app.exception
    code = {"window": "window.1", "prefix": "prefix.3", "painted": "everything"}.get(preset, preset)
    found = masked(code)
    assert metrics(app)[0].startswith(moved(found))
    assert re.findall(r"\d+", metrics(app)[1]) == [str(int(found.reach.sum())), str(SIZE)]


def test_where_the_mask_holds_and_padding_change_the_numbers() -> None:
    app = run("masks", text=TEXT, masks_where="one", layer="2", masks_pads="3", masks_preset="everything")
    assert metrics(app)[0].startswith(moved(masked("everything", everywhere=False, layer=2, pads=3)))
    app.button_group(key="masks_where@masks").set_value("all").run()
    assert metrics(app)[0].startswith(moved(masked("everything", layer=2, pads=3)))
    app.selectbox(key="layer@masks").set_value("1").run()
    app.slider(key="masks_pads@masks").set_value(0).run()
    assert not app.exception
    assert metrics(app)[0].startswith("+0.0")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_painted_mask_in_the_link_is_read_and_a_wholly_masked_row_says_why(language: str) -> None:
    mask = torch.ones(SIZE, SIZE, dtype=torch.bool)
    mask[2] = False
    app = run("masks", lang=language, text=TEXT, masks_preset="painted", masks_rows=painted_code(mask))
    assert not app.exception
    assert metrics(app)[0].startswith(moved(masked(painted_code(mask))))
    said = told(app)
    assert words(language)["masks.convention_softmax"] in said
    assert "| nan | nan | nan | nan |" in said
    assert f"| {1 / SIZE:.4f} | {1 / SIZE:.4f} | 1.0000 |" in said


@pytest.mark.parametrize("rows", ["x", "3.iI", "999.AAAA", "[a](http://b)", "٣.iIA", "9" * 3000])
def test_a_broken_mask_in_the_link_is_refused_in_words(rows: str) -> None:
    app = run("masks", text=TEXT, masks_preset="painted", masks_rows=rows)
    assert not app.exception
    assert "cannot be read" in app.info[0].value
    assert "](" not in app.info[0].value
    assert metrics(app)[0].startswith("+0.0")


def test_a_mask_for_another_text_is_refused_with_both_sizes() -> None:
    app = run("masks", text=TEXT, masks_preset="painted", masks_rows="3.iIA")
    assert "for 3 tokens, but there are" in app.info[0].value
    assert not app.exception


def test_invert_turns_every_cell_over_and_reset_forgets_it() -> None:
    app = run("masks", text=TEXT)
    press(app, "Invert")
    inverted = painted_code(~masked("causal").mask)
    assert app.query_params["masks_rows"] == inverted
    assert app.query_params["masks_preset"] == "painted"
    assert metrics(app)[0].startswith(moved(masked(inverted)))
    press(app, "Reset")
    assert not {"masks_rows", "masks_preset"} & set(app.query_params)
    assert metrics(app)[0].startswith(moved(masked("causal")))


def test_a_long_text_is_cut_to_what_a_link_can_carry() -> None:
    app = run("masks", text="good film " * 60)
    assert "first 64 of" in told(app)
    app.slider(key="masks_pads@masks").set_value(4).run()
    assert "first 60 of" in told(app)
    assert not app.exception


def test_the_experiment_on_layers_measures_both() -> None:
    app = run("masks", text=TEXT, masks_try="true", layer="1")
    asks(app)[0].set_value("all").run()
    assert not app.exception
    for everywhere in (True, False):
        found = masked("causal", everywhere=everywhere, layer=1)
        first = int(found.before.argmax())
        assert minus(f"{100 * (found.after[first] - found.before[first]):+.2f}") in told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_batch_is_shown_with_its_padding_and_polarity_is_measured(language: str) -> None:
    app = run("masks", lang=language, masks_part="batch", masks_try_polarity="true")
    assert not app.exception
    assert any('class="pad"' in element.proto.body for element in app.get("html"))
    asks(app)[0].set_value("error").run()
    assert not app.exception
    assert "×10⁻" in told(app)
    app.text_area(key="masks_lines@masks").set_value("one line").run()
    said = words(language)["masks.lines_needed"].format(fewest=2, most=6, count=1)
    assert said in told(app)
    app.text_area(key="masks_lines@masks").set_value(f"{'a' * (CHARACTERS + 1)}\nb").run()
    assert words(language)["masks.line_too_long"].format(line=0, most=CHARACTERS) in told(app)
    assert app.get("bidi_component")
    app.text_area(key="masks_lines@masks").set_value("a\nb\nc\nd\ne\nf\n").run()
    app.selectbox(key="masks_source@masks").set_value("5").run()
    assert not app.exception


@cache
def trained_shortly() -> Cheating:
    return mask_cheating(language="en", steps=12, seed=0)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Cheating:
    """A training of few steps in place of a long one; what it found."""
    found = trained_shortly()

    def awaited(function: Callable[..., Cheating], *_: object, key: str, **asked: Any) -> Answer[Cheating] | None:
        return None if covered() else Answer(found, function, asked)

    monkeypatch.setattr("pages.masks.cheat.awaited", awaited)
    return found


def test_training_waits_for_an_answer_and_for_a_click_where_something_changes(short: Cheating) -> None:
    app = run("masks", masks_part="cheat", lang="en")
    assert not app.metric
    asks(app)[0].set_value("lower").run()
    assert not app.exception
    assert app.query_params["masks_trained"] == "en.240.0"
    assert metrics(app)[1].startswith(f"{short.cheater.held_out[-1]:.2f}")
    app.slider(key="masks_seed@masks").set_value(1).run()
    assert not app.metric
    app.button(key="masks_train").click().run()
    assert app.metric


def test_a_link_to_a_finished_training_shows_it(short: Cheating) -> None:
    app = run("masks", masks_part="cheat", lang="zh", masks_corpus="en", masks_trained="en.240.0", shown="masks_cheat")
    assert not app.exception
    assert metrics(app)[2].startswith(f"{short.cheater.held_out_masked[-1]:.2f}")


@pytest.mark.nightly
def test_the_scripts_repeat_the_numbers() -> None:
    head = ask(
        masked_head, prompt=Prompt(BUNDLE, TEXT, SIZE), pads=2, mask="window.1", layer=1, head=3, everywhere=False
    )
    repeats(head.script, head.arrays)
    batch = ask(batch_masks, bundle=BUNDLE, texts=("a film", TEXT), source=0, target=1, n_tokens=24)
    repeats(batch.script, batch.arrays)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_mask_repeated_head_by_head_moves_sentences_that_are_reordered(language: str) -> None:
    lines = "I liked it.\nNot a dull scene in two hours.\nThe ending was slow, but superb."
    app = run("masks", lang=language, masks_part="batch", masks_lines=lines, masks_mixed_open="true")
    assert not app.exception
    found = mixed_masks(bundle=BUNDLE, texts=tuple(lines.splitlines()), n_tokens=24)
    next(pills for pills in asks(app) if "masks_mixed" in str(pills.key)).set_value("some").run()
    assert not app.exception
    assert f"{found.mixed_moves.max():.1%}" in told(app)
    assert f"{found.mixed_apart.max():.1%}" in told(app)
    even = run("masks", lang=language, masks_part="batch", masks_lines="a film\na book", masks_mixed_open="true")
    next(pills for pills in asks(even) if "masks_mixed" in str(pills.key)).set_value("none").run()
    assert words(language)["masks.mixed_alike"] in told(even)
    other = run("masks", lang=language, model="gpt", masks_part="batch", masks_mixed_open="true")
    assert words(language)["masks.mixed_needs"].format(name="gpt") in told(other)


@pytest.mark.parametrize(("options", "language"), [("gemma3", "en"), ("window", "zh"), ("llama", "en")])
def test_a_layers_window_is_drawn_and_said(
    options: str, language: str, opened_odd: Callable[[str, str], Bundle]
) -> None:
    bundle = opened_odd("gpt", options)
    app = run("masks", lang=language, model=bundle.name, text="Once upon a time", layer="0", masks="everything")
    assert not app.exception
    figures = [header for header, _ in matrices(app)]
    painter = next(figure for figure in figures if figure.get("paint"))
    window = bundle.config.window(0)
    assert [panel["window"] for panel in painter["panels"]] == [window and [window, window]] * 3
    before = words(language)["axis.window_both"].format(before=(window or 0) - 1)
    assert (before in painter["note"]) == (window is not None)
    layers = ", ".join(f"{layer} ({one})" for layer, one in enumerate(bundle.config.windows) if one)
    assert (words(language)["axis.windows"].format(layers=layers) in painter["note"]) == bool(layers)
    assert words(language)["masks.before_causal"] in told(app)


def test_the_tokens_of_a_batch_are_text() -> None:
    app = run("masks", masks_part="batch", masks_lines="a <b> film & more\na book")
    table = next(one.proto.body for one in app.get("html") if "masks-batch" in one.proto.body)
    assert "&lt;" in table
    assert "&amp;" in table
    assert "<bdi><" not in table
