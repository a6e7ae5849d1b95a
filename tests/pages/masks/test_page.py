"""The masks page: every control in both languages and in the link, honest numbers, and odd links answered in words."""

import re
from collections.abc import Iterator
from functools import cache, wraps
from itertools import cycle

import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.masks.painter import PRESETS
from pages.ui.asking import ask, forget_answers
from pages.ui.language import LANGUAGES, words
from tests.e2e.acting import BUNDLE
from tests.pages.running import asks, run, told
from tests.pages.scripts import repeats
from transformer_core.analysis.masks.batch_masks import batch_masks
from transformer_core.analysis.masks.codes import painted_code
from transformer_core.analysis.masks.masked_head import MaskedHead, masked_head
from transformer_core.analysis.masks.training_without_mask import Cheating, mask_cheating

TEXT = "The film was not good, but I loved the ending."
SIZE = len(BUNDLE.tokenizer.encode(TEXT))


def asked(mask: str, **changes) -> MaskedHead:
    """Return what the library computes for a mask."""
    arguments = {"text": TEXT, "n_tokens": SIZE, "pads": 0, "layer": 0, "head": 0, "everywhere": True} | changes
    return masked_head(bundle=BUNDLE, mask=mask, **arguments)


def metrics(app: AppTest) -> list[str]:
    """Return the numbers that stand large on the page."""
    return [metric.value for metric in app.metric]


def press(app: AppTest, label: str) -> None:
    """Click the button of this label."""
    next(button for button in app.button if button.label == label).click().run()


def moved(found: MaskedHead) -> float:
    """Return how many points the verdict's probability changes by."""
    first = found.before.index(max(found.before))
    return 100 * (found.after[first] - found.before[first])


def verdict_moves(app: AppTest, found: MaskedHead) -> bool:
    """Return whether the page shows that change."""
    return metrics(app)[0].startswith(f"{moved(found):+.1f}")


@pytest.mark.parametrize(("preset", "language"), list(zip(PRESETS, cycle(LANGUAGES), strict=False)))
def test_every_preset_is_shown_with_its_own_numbers(language: str, preset: str) -> None:
    app = run("masks", lang=language, text=TEXT, masks_preset=preset, masks_window="1", masks_prefix="3")
    assert not app.exception
    code = {"window": "window.1", "prefix": "prefix.3", "painted": "everything"}.get(preset, preset)
    found = asked(code)
    assert verdict_moves(app, found)
    assert re.findall(r"\d+", metrics(app)[1]) == [str(int(found.reach.sum())), str(SIZE)]


def test_layers_of_the_mask_and_padding_change_the_numbers() -> None:
    app = run("masks", text=TEXT, masks_where="one", layer="2", masks_pads="3", masks_preset="everything")
    assert verdict_moves(app, asked("everything", everywhere=False, layer=2, pads=3))
    app.button_group(key="masks_where@masks").set_value("all").run()
    assert verdict_moves(app, asked("everything", layer=2, pads=3))
    app.selectbox(key="layer@masks").set_value("1").run()
    app.slider(key="masks_pads@masks").set_value(0).run()
    assert not app.exception
    assert metrics(app)[0].startswith("+0.0")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_painted_mask_in_the_link_is_read_and_a_wholly_masked_row_says_why(language: str) -> None:
    mask = torch.ones(SIZE, SIZE, dtype=torch.bool)
    mask[2] = False
    app = run("masks", lang=language, text=TEXT, masks_preset="painted", masks_rows=painted_code(mask))
    assert not app.exception
    assert verdict_moves(app, asked(painted_code(mask)))
    said = told(app)
    assert words(language)["masks.convention_softmax"] in said
    assert "| nan | nan | nan | nan |" in said
    assert f"| {1 / SIZE:.4f} | {1 / SIZE:.4f} | 1.0000 |" in said


@pytest.mark.parametrize("rows", ["x", "3.iI", "999.AAAA", "[a](http://b)", "٣.iIA", "9" * 3000])
def test_a_broken_mask_in_the_link_is_refused_in_words(rows: str) -> None:
    app = run("masks", text=TEXT, masks_preset="painted", masks_rows=rows)
    assert not app.exception
    assert "cannot be read" in app.warning[0].value
    assert "](" not in app.warning[0].value
    assert metrics(app)[0].startswith("+0.0")


def test_a_mask_for_another_text_is_refused_with_both_sizes() -> None:
    app = run("masks", text=TEXT, masks_preset="painted", masks_rows="3.iIA")
    assert "for 3 tokens, but there are" in app.info[0].value
    assert not app.exception


def test_invert_hides_what_was_allowed_and_reset_clears_the_link() -> None:
    app = run("masks", text=TEXT)
    press(app, "Invert")
    inverted = painted_code(~asked("causal").mask)
    assert app.query_params["masks_rows"] == inverted
    assert app.query_params["masks_preset"] == "painted"
    assert verdict_moves(app, asked(inverted))
    press(app, "Reset")
    assert not {"masks_rows", "masks_preset"} & set(app.query_params)
    assert verdict_moves(app, asked("causal"))


@pytest.mark.parametrize(
    ("part", "text"),
    [
        *((part, text) for part in ("paint", "batch") for text in ("好 🙂 مرحبا", "[PAD]", "good film " * 100)),
        ("paint", "x"),
        ("cheat", "[PAD]"),
    ],
)
def test_any_text_is_read(part: str, text: str) -> None:
    app = run("masks", text=text, masks_part=part, masks_lines=f"{text[:150]}\n{text[:150]}")
    assert not app.exception


def test_a_long_text_is_cut_to_a_mask_that_fits_the_link() -> None:
    app = run("masks", text="good film " * 60)
    assert "first 64 of" in told(app)
    app.slider(key="masks_pads@masks").set_value(4).run()
    assert "first 60 of" in told(app)
    assert not app.exception


@pytest.mark.parametrize(
    "query", [{"masks_window": "-1"}, {"masks_window": "x"}, {"masks_preset": "odd"}, {"layer": "9"}]
)
def test_odd_values_in_the_link_are_answered(query: dict[str, str]) -> None:
    app = run("masks", text=TEXT, **({"masks_preset": "window"} | query))
    assert not app.exception
    assert app.toast


def test_the_experiment_on_layers_measures_both() -> None:
    app = run("masks", lang="zh", text=TEXT, masks_try="true", layer="1")
    asks(app)[0].set_value("all").run()
    assert not app.exception
    for everywhere in (True, False):
        found = asked("causal", everywhere=everywhere, layer=1)
        assert f"{moved(found):+.2f}" in told(app)


@pytest.mark.parametrize("language", LANGUAGES)
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
    assert app.get("bidi_component")
    app.text_area(key="masks_lines@masks").set_value("a\nb\nc\nd\ne\nf\n").run()
    app.selectbox(key="masks_source@masks").set_value("5").run()
    assert not app.exception


@cache
def trained_shortly() -> Cheating:
    """Return what a training of few steps finds."""
    return mask_cheating(language="en", steps=12, seed=0)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cheating]:
    """Train for few steps in place of many, and return what that finds."""
    found = trained_shortly()
    monkeypatch.setattr("pages.masks.cheat.mask_cheating", wraps(mask_cheating)(lambda **_: found))
    yield found
    forget_answers()


def test_training_waits_for_a_prediction_and_after_a_change_for_a_click(short: Cheating) -> None:
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_link_to_a_finished_training_shows_it(language: str, short: Cheating) -> None:
    app = run(
        "masks", masks_part="cheat", lang=language, masks_corpus="en", masks_trained="en.240.0", shown="masks_cheat"
    )
    assert not app.exception
    assert metrics(app)[2].startswith(f"{short.cheater.held_out_masked[-1]:.2f}")


def test_the_scripts_repeat_the_numbers() -> None:
    head = ask(
        masked_head, bundle=BUNDLE, text=TEXT, n_tokens=SIZE, pads=2, mask="window.1", layer=1, head=3, everywhere=False
    )
    repeats(head.script, head.arrays)
    batch = ask(batch_masks, bundle=BUNDLE, texts=("a film", TEXT), source=0, target=1, n_tokens=24)
    repeats(batch.script, batch.arrays)
