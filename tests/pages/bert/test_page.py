"""The BERT page on small untrained models of three shapes: every part, odd links, odd texts, scripts that repeat."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.bert.gelu import used_alike
from pages.kit.asking import ask
from pages.kit.models import MORE_MODELS, open_bundle
from pages.kit.number_format import percent, significant
from pages.language import prose, words
from tests.helpers.engine import lively
from tests.helpers.pages import asks, metrics, minus, repeats, run, told
from transformer_core.analysis.arithmetic import tensor_of
from transformer_core.analysis.bert.head_gelu import head_gelu
from transformer_core.analysis.bert.layers import by_layer, each_by_layer
from transformer_core.analysis.bert.masked_words import each_hidden, fill_in
from transformer_core.analysis.bert.masking_recipe import masking_recipe, three_ways
from transformer_core.analysis.bert.sentence_pairs import pair_verdict, segment_rows, without_segments, words_of_pair
from transformer_core.bundle import Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.models import Bert
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

TEXTS = ["A man in a red shirt is riding a horse.", "Two dogs run on the beach.", "A cowboy is outside."] * 3
MODEL = "bert-pre"
SHAPES = {
    MODEL: {"n_segments": 2},
    "bert-post": {"n_segments": 2, "norm_order": "post", "embedding_norm": True, "positions": "learned"},
    "bert-bare": {"n_segments": 0, "pair_head": False, "tied_output": False},
}
TEXT, SECOND = TEXTS[0], TEXTS[1]
PARTS = ("fill", "layers", "pair", "segments", "tied", "recipe")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of small untrained Berts, one of each shape."""
    place = tmp_path_factory.mktemp("berts")
    tokenizer = Tokenizer.train("wordpiece", TEXTS, vocab_size=120, lowercase=True, min_frequency=1)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "max_len": 48, "dropout": 0.0}
    for name, shape in SHAPES.items():
        torch.manual_seed(0)
        model = lively(Bert(ModelConfig(vocab_size=tokenizer.vocab_size, **sizes, **shape)))
        save(Bundle(name, model, tokenizer), place / name)
    return place


@pytest.fixture(autouse=True)
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the app find them."""
    monkeypatch.setenv(MORE_MODELS, str(folder))


def opened(part: str = "fill", **query: str) -> AppTest:
    """Open a part of the page with the first model and the usual text."""
    app = run("bert", **{"model": MODEL, "text": TEXT, "bert_second": SECOND, "bert_part": part} | query)
    assert not app.exception, app.exception
    return app


@pytest.mark.nightly
@pytest.mark.parametrize(("language", "model"), [("en", MODEL), ("zh", "bert-post")])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_opens_in_both_languages_for_both_norm_orders(part: str, language: str, model: str) -> None:
    app = opened(part, lang=language, model=model, glass_open="true")
    said = prose(language, "bert")
    assert said.get(f"look_{part}", said.get(part)) in told(app)
    assert not app.error


def test_the_last_word_is_hidden_at_first_and_its_numbers_are_the_model_s() -> None:
    app = opened()
    found = fill_in(prompt=Prompt(open_bundle(MODEL), TEXT, 13), hidden=(10,))
    assert found.true_labels == ("horse",)
    shown = metrics(app)
    assert shown[words("en")["bert.true_probability"]] == percent(found.true_probabilities[0])
    assert shown[words("en")["bert.true_rank"]] == f"{found.true_ranks[0]:,}"


def test_clicked_chips_hide_and_the_link_says_so() -> None:
    app = opened()
    app.pills(key="bert_hidden@bert").set_value([2, 5, 6, 7, 8]).run()
    assert not app.exception
    assert app.query_params["bert_hidden"] == "2.5.6.7.8"
    assert words("en")["bert.more_masks"].format(shown=4, count=5) in told(app)
    app.pills(key="bert_hidden@bert").set_value([]).run()
    assert words("en")["bert.hide_one"] in told(app)
    assert app.query_params["bert_hidden"] == "none"


def test_a_typed_mask_is_enough() -> None:
    app = opened(text="A man in a [MASK] shirt is riding a horse.")
    assert app.pills(key="bert_hidden@bert").value == []
    assert words("en")["bert.typed_told"] in told(app)


def test_a_prediction_comes_before_the_guesses() -> None:
    app = opened(bert_predict="on")
    assert {metric.value for metric in app.metric} == {"–"}
    found = fill_in(prompt=Prompt(open_bundle(MODEL), TEXT, 13), hidden=(10,))
    asks(app)[0].set_value(str(found.ids[0][0])).run()
    assert not app.exception
    assert words("en")["try.right"] in told(app)
    assert metrics(app)


def test_the_hardest_word_is_shown_after_a_prediction() -> None:
    app = opened(bert_hardest_open="true")
    asks(app)[0].set_value("1").run()
    assert not any("horse" in option for option in asks(app)[0].options)
    found = each_hidden(prompt=Prompt(open_bundle(MODEL), TEXT, 13))
    assert percent(min(found.probabilities[found.places != 10])) in told(app)
    assert f"{found.share_first:.0%}" in told(app)


def test_the_stage_from_which_the_answer_leads_is_shown_after_a_prediction() -> None:
    app = opened("layers", bert_hidden="2.5", bert_mask="5", bert_each_layer_open="true")
    found = by_layer(prompt=Prompt(open_bundle(MODEL), TEXT, 13), hidden=(2, 5), place=5)
    assert f"({percent(found.probabilities[-1, 0])})" in asks(app)[0].label
    said = words("en")["bert.settled_measured"].partition("{rank}")[0]
    assert said not in told(app)
    asks(app)[0].set_value(str(found.settled)).run()
    assert words("en")["try.right"] in told(app)
    assert f"{said}{found.ranks[0, 0]:,}" in told(app)
    asks(app)[1].set_value("few").run()
    each = each_by_layer(prompt=Prompt(open_bundle(MODEL), TEXT, 13))
    counted = {"early": int((each.settled < 2).sum()), "count": len(each.places)}
    assert words("en")["bert.settled_counted"].format(**counted) in told(app)


def test_the_tuned_lens_is_a_switch_with_what_it_changes_beside_it() -> None:
    app = opened("layers", model="bert", lens="tuned", bert_hidden="2", bert_mask="2")
    bundle = open_bundle("bert")
    prompt = Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT)))
    found = by_layer(prompt=prompt, hidden=(2,), place=2, through="tuned")
    asks(app)[0].set_value(str(found.settled)).run()
    assert words("en")["try.right"] in told(app)
    assert percent(found.best_probabilities[1, 0]) in told(app)
    for row in bundle.measured.lens:
        assert f"| {row.logit:.2f} | {row.tuned:.2f} |" in told(app)


def test_the_sentences_are_swapped() -> None:
    app = opened("pair")
    app.button(key="bert_swap").click().run()
    assert not app.exception
    assert app.query_params["text"] == SECOND
    assert app.query_params["bert_second"] == TEXT


def test_a_hidden_word_of_the_pair_is_measured() -> None:
    app = opened("pair")
    found = words_of_pair(prompt=Prompt(open_bundle(MODEL), TEXT, 48, SECOND))
    asks(app)[0].set_value("little").run()
    assert not app.exception
    lengths = [len(label) * segment for label, segment in zip(found.labels, found.segments, strict=True)]
    assert minus(f"{found.moves[lengths.index(max(lengths))]:+.2f}") in told(app)


def test_the_verdict_without_segments_is_measured() -> None:
    app = opened("segments")
    asks(app)[0].set_value("flips").run()
    assert not app.exception
    found = without_segments(prompt=Prompt(open_bundle(MODEL), TEXT, 48, SECOND))
    for change in ("usual", "swapped", "none"):
        assert f"{found.follows[found.changes.index(change)]:.1%}" in told(app)


@pytest.mark.parametrize(("model", "key"), [(MODEL, "tied_same"), ("bert-bare", "tied_not")])
def test_tied_and_untied_matrices_are_told_apart(model: str, key: str) -> None:
    app = opened("tied", model=model)
    assert words("en")[f"bert.{key}"].partition("**")[0] in told(app)
    asks(app)[0].set_value("none").run()
    assert not app.exception


def test_the_recipe_is_drawn_again_and_its_use_measured() -> None:
    app = opened("recipe", bert_ways_open="true")
    app.button(key="bert_draw_again").click().run()
    assert "Seed 6" in told(app)
    asks(app)[0].set_value("near").run()
    assert not app.exception
    found = three_ways(prompt=Prompt(open_bundle(MODEL), TEXT, 13), seed=6)
    for mean in found.means:
        assert f"{mean:.1%}" in told(app)


@pytest.mark.parametrize(("part", "key"), [("pair", "no_pair_head"), ("segments", "needs_segments")])
def test_a_part_that_the_model_lacks_says_so(part: str, key: str) -> None:
    assert words("en")[f"bert.{key}"].format(name="bert-bare") in told(opened(part, model="bert-bare"))


@pytest.mark.nightly
@pytest.mark.parametrize(
    "query",
    [
        {"bert_hidden": "99"},
        {"bert_hidden": "<b>", "bert_part": "layers"},
        {"bert_hidden": "0.1"},
        {"bert_part": "x"},
        {"bert_mask": "77", "bert_part": "tied", "bert_word": "-1"},
        {"bert_second": "", "bert_part": "pair"},
        {"bert_second": "x" * 2_001, "bert_part": "segments"},
        {"bert_second": "long " * 90, "bert_part": "pair"},
        {"bert_pair_token": "٣", "bert_part": "pair"},
        {"bert_seed": "1e9", "bert_percent": "nan", "bert_part": "recipe"},
    ],
    ids=str,
)
def test_odd_values_in_the_link_raise_nothing(query: dict[str, str]) -> None:
    opened(**{"part": query.get("bert_part", "fill")} | query)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "text"),
    [
        *[("fill", text) for text in ("🙂", "[CLS] [SEP]", "\u200b")],
        *[("layers", text) for text in ("电影很好看", "[MASK]", "a dog " * 90)],
        *[("pair", text) for text in ("مرحبا بالعالم", "[MASK]", "a dog " * 90)],
        *[("recipe", text) for text in ("a", "[MASK]", "\u200b")],
    ],
)
def test_any_text_is_read(part: str, text: str) -> None:
    opened(part, text=text)


def test_the_glass_reads_the_masked_sentence() -> None:
    app = opened(glass_open="true", glass="encoder.embedding.token_ids")
    masked = open_bundle(MODEL).tokenizer.encode(TEXT.replace("horse", "[MASK]"))
    recorded = tensor_of(prompt=Prompt(open_bundle(MODEL), masked.text, 13), name="encoder.embedding.token_ids")
    assert recorded.values[0].tolist() == list(masked.ids)
    assert not app.error


def test_the_scripts_compute_the_same() -> None:
    bundle = open_bundle(MODEL)
    text = {"prompt": Prompt(bundle, TEXT, 13)}
    pair = {"prompt": Prompt(bundle, TEXT, 48, SECOND)}
    for answer in (
        ask(fill_in, **text, hidden=(2, 10), top=8),
        ask(words_of_pair, **pair),
    ):
        repeats(answer.script, answer.arrays)
    others = (ask(each_by_layer, **text), ask(pair_verdict, **pair), ask(segment_rows, **pair))
    assert all(answer.script and answer.arrays for answer in others)
    assert ask(masking_recipe, **text, probability=0.15, seed=1, copies=10).script


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_head_is_shown_with_both_formulas_of_gelu(language: str) -> None:
    app = run("bert", lang=language, text="A man in a [MASK] shirt.", bert_part="tied", bert_gelu_open="true")
    assert not app.exception
    next(pills for pills in asks(app) if "bert_gelu" in str(pills.key)).set_value("little").run()
    assert words(language)["try.right"] in told(app)
    found = head_gelu(prompt=Prompt(open_bundle("bert"), "A man in a [MASK] shirt.", 64), hidden=(), place=5, top=6)
    assert significant(found.greatest) in told(app)


@pytest.mark.parametrize(("same", "said"), [(9, "either"), (8, "one")])
def test_either_gelu_may_be_used_where_no_guess_changes(same: int, said: str) -> None:
    found: Any = SimpleNamespace(same=same, places=9)
    assert used_alike(found) == said
