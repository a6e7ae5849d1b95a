"""The attention page: every control in both languages, in the link, and with honest numbers."""

import pytest

from pages.ui.header import whole_words, word_start
from pages.ui.language import words
from pages.ui.models import open_bundle
from tests.pages.running import asks, run, told
from transformer_core.analysis.attention.heads import head_off
from transformer_core.analysis.outcome import read

TEXT = "The film was not good, but I loved the ending."


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("step", ["products", "scores", "masked_scores", "weights", "mixture"])
def test_every_step_is_shown(language: str, step: str) -> None:
    app = run("attention", lang=language, text=TEXT, step=step, layer="1", head="2")
    assert not app.exception
    assert not app.error
    assert app.session_state["step@attention"] == step
    assert app.session_state["layer@attention"] == "1"
    assert app.session_state["head@attention"] == "2"


def test_an_unknown_layer_in_the_link_is_named() -> None:
    app = run("attention", layer="9", head="x")
    assert not app.exception
    assert "layer = 9" in told(app)
    assert "head = x" in told(app)
    assert app.session_state["layer@attention"] == "0"


@pytest.mark.parametrize("cell", ["3.4", "99.0", "x.y", "", "1", "-1.2", "٣.1", "1.1.1", f"{'9' * 5000}.1"])
def test_any_cell_in_the_link_is_survived(cell: str) -> None:
    assert not run("attention", text=TEXT, cell=cell).exception


def test_long_text_is_windowed_in_words() -> None:
    app = run("attention", text="good film " * 100)
    assert not app.exception
    assert words("en")["text.part_read"].format(count=202, most=128) in app.get("popover")[0].proto.popover.label
    app.slider(key="start@attention").set_value(40).run()
    assert not app.exception


def test_a_window_beyond_a_shortened_text_moves_back() -> None:
    app = run("attention", text="good film " * 100)
    app.slider(key="start@attention").set_value(70).run()
    app.text_input(key="text@attention").set_value("good film " * 70).run()
    assert not app.exception
    assert app.slider(key="start@attention").value == app.slider(key="start@attention").max


def test_the_experiment_shows_what_the_model_computes_without_the_head() -> None:
    app = run("attention", text=TEXT, layer="2", head="3", try_open="true")
    asks(app)[0].set_value("little").run()
    bundle = open_bundle("sentiment")
    encoding = bundle.tokenizer.encode(TEXT)
    before = read(bundle, encoding, sites=("class_logits",)).probabilities
    off = head_off("encoder.layer2.self_attention", 3)
    after = read(bundle, encoding, sites=("class_logits",), edits=off).probabilities
    winner = before.index(max(before))
    assert f"{100 * (after[winner] - before[winner]):+.2f}" in told(app)
    assert any(f"{after[winner]:.1%}" in bar.proto.body for bar in app.get("html"))


@pytest.mark.parametrize("text", ["[MASK] " * 130, "[PAD]", "[CLS] [SEP] " * 80, "unwatchability " * 60])
def test_text_that_spells_special_tokens_is_read(text: str) -> None:
    assert not run("attention", text=text).exception


@pytest.mark.parametrize(
    ("text", "place", "start"),
    [("an unwatchability", 8, 3), ("an unwatchability", 3, 3), ("这部电影", 2, 2), ("a.b", 2, 2)],
)
def test_a_window_starts_where_a_word_does(text: str, place: int, start: int) -> None:
    assert word_start(text, place) == start


@pytest.mark.parametrize(
    ("text", "most", "read"),
    [
        ("good films and unwatchability here", 6, "good films and"),
        ("unwatchability", 3, "unwatch"),
        ("good films ", 9, "good films "),
        ("这部电影很好看", 6, "这部电影"),
    ],
)
def test_a_window_ends_where_a_word_does(text: str, most: int, read: str) -> None:
    assert whole_words(open_bundle("sentiment").tokenizer.encode(text, max_len=most)) == read


@pytest.mark.parametrize(
    ("name", "start"), [("gpt", "0"), ("gpt", "50"), ("bert", "7"), ("translation", "3"), ("encoder", "11")]
)
def test_no_page_shows_more_of_a_long_text_than_is_read(name: str, start: str) -> None:
    text = " ".join(f"the old dog sees {number} trees." for number in range(60))
    app = run(name, text=text, start=start, gpt_part="write", encoder_part="edit", translation_part="cross")
    assert not app.exception
    blocks = [block.value for block in app.code] + [block.proto.body for block in app.get("html")]
    assert "59 trees" not in "".join([told(app), *blocks])


def test_a_link_cannot_put_a_link_into_a_message() -> None:
    app = run("attention", layer="[Log in again](https://example.org)")
    assert not app.exception
    assert "](" not in "".join(toast.value for toast in app.toast)


def test_typed_padding_is_hidden_from_every_query() -> None:
    bundle = open_bundle("sentiment")
    encoding = bundle.tokenizer.encode("good [PAD] film")
    weights = read(bundle, encoding, sites=("*.weights",)).trace.stack("*.weights")
    assert weights[..., encoding.ids.index(bundle.tokenizer.pad_id)].abs().max() == 0
