"""Home is useful with no click, in both languages, whatever is typed."""

from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.home.size import GPT2_SMALL, size_in_words
from pages.kit.asking import forget_answers
from pages.kit.examples import SENTENCES
from pages.kit.header import DEFAULT_TEXT, EXAMPLES, MOST_CHARACTERS, View
from pages.kit.models import forget_models, open_bundle, shipped_names
from pages.kit.navigation import page_path
from pages.kit.verdict import sureness
from pages.language import words
from tests.helpers.open_checkpoints import written
from tests.helpers.pages import first_screen, note, run, told
from transformer_core.analysis.attention.occlusion import WordImportance, word_importance
from transformer_core.analysis.counter_examples import counter_examples
from transformer_core.analysis.outcome import read
from transformer_core.analysis.strangeness import strangeness
from transformer_core.config import ModelConfig
from transformer_core.evaluation.weak_sides import word_count
from transformer_core.measured import Confidence, Measured
from transformer_core.models import Gpt
from transformer_core.prompt import Prompt
from transformer_core.recipes.texts import card_texts


def because(app: AppTest) -> str:
    """Return the HTML of the words under the verdict."""
    return "\n".join(element.proto.body for element in app.get("html") if "tinted" in element.proto.body)


def line(app: AppTest) -> str:
    """Return the line of notes under the text."""
    return "\n".join(element.proto.body for element in app.get("html") if "text-line" in element.proto.body)


def verdict(app: AppTest) -> str:
    """Return the HTML of the verdict."""
    return "\n".join(element.proto.body for element in app.get("html") if "data-verdict" in element.proto.body)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_screen_needs_no_click(language: str) -> None:
    app = run(lang=language)
    assert not app.exception
    assert app.text_input(key="text@").value == DEFAULT_TEXT
    assert words(language)["home.heading"] in told(app)
    assert f"{open_bundle('sentiment').n_parameters:,}" in told(app)
    assert because(app)


def test_in_chinese_a_person_meets_a_model_that_reads_chinese() -> None:
    app = first_screen(lang="zh")
    assert not app.exception
    assert app.selectbox(key="model@").value == "sentiment-zh"
    assert app.text_input(key="text@").value == EXAMPLES["sentiment-zh"]
    assert f"{open_bundle('sentiment-zh').n_parameters:,}" in told(app)
    app.button_group(key="lang@").set_value("en").run()
    assert app.selectbox(key="model@").value == "sentiment"
    assert app.text_input(key="text@").value == DEFAULT_TEXT
    app.text_input(key="text@").set_value("My own words.").run()
    app.button_group(key="lang@").set_value("zh").run()
    assert (app.selectbox(key="model@").value, app.text_input(key="text@").value) == ("sentiment", "My own words.")
    app.switch_page(str(page_path("gpt"))).run()
    assert (app.selectbox(key="model@gpt").value, app.text_input(key="text@gpt").value) == ("gpt", "My own words.")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("text", "model"), [("这部电影不好看。", "sentiment-zh"), ("It is good.", "sentiment")])
def test_a_link_with_a_text_and_no_model_opens_the_one_that_reads_the_text(
    language: str, text: str, model: str
) -> None:
    assert first_screen(lang=language, text=text).selectbox(key="model@").value == model


@pytest.mark.parametrize(("page", "model"), [("bert", "bert"), ("before", "seq2seq-en-fr")])
def test_where_no_model_reads_chinese_the_page_says_so_and_offers_a_sentence(page: str, model: str) -> None:
    said = words("zh")
    app = first_screen(page, lang="zh")
    assert said["text.reads_en"] in note(app)
    example = app.text_input(key=f"text@{page}").value
    app.text_input(key=f"text@{page}").set_value("这部电影一点也不好看。").run()
    assert app.selectbox(key=f"model@{page}").value == model
    assert said[f"learned.{model}"] in told(app)  # at the answer
    assert said["text.reads_en"] not in note(app)  # the button says it
    app.button(key="offer_sentence").click().run()
    assert not app.exception
    assert app.text_input(key=f"text@{page}").value == example


@pytest.mark.parametrize(
    ("text", "shown", "offered"),
    [("这部电影不好看。", "sentiment", "sentiment-zh"), ("It is good.", "sentiment-zh", "sentiment")],
)
def test_a_text_in_another_language_is_offered_its_reader_and_is_kept(text: str, shown: str, offered: str) -> None:
    app = run(text=text, model=shown)
    assert app.selectbox(key="model@").value == shown
    app.button(key="offer_reader").click().run()
    assert not app.exception
    assert app.selectbox(key="model@").value == offered
    assert app.text_input(key="text@").value == text
    assert not [button for button in app.button if button.key == "offer_reader"]


def test_a_verdict_says_how_often_such_a_verdict_is_right() -> None:
    app = run(model="sentiment-zh", text="很好吃，下次再来。")
    bundle = open_bundle("sentiment-zh")
    encoding = bundle.tokenizer.encode("很好吃，下次再来。")
    found = bundle.measured.sure(word_count(encoding), max(read(bundle, encoding, sites=()).probabilities))
    assert found is not None
    bodies = "\n".join(element.proto.body for element in app.get("html"))
    assert f"{found.right / found.texts:.0%}" in bodies
    assert f"{found.texts:,}" in bodies


@pytest.mark.parametrize(
    "text",
    [
        "日本語と中文 😀👩‍👩‍👧‍👦",
        "שלום עולם مرحبا",
        "a\x00b\x07\x1b[31m\u202e",
        "\u202e",
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)> good",
        "don't",
        "=cmd|' /C calc'!A0",
        "𝕬" * 300,
        "a" * 1_500,
    ],
)
def test_strange_text_is_read_and_shown_as_text(text: str) -> None:
    app = run(text=text)
    assert not app.exception
    assert not app.error
    assert "<img" not in because(app)
    assert "GPT-2 small" in told(app)


def test_empty_text_is_answered_in_words_and_the_page_lives_on() -> None:
    app = run()
    app.text_input(key="text@").set_value("   ").run()
    assert not app.exception
    assert words("en")["text.empty"] in told(app)
    app.text_input(key="text@").set_value("back again").run()
    assert "GPT-2 small" in told(app)


def test_ten_megabytes_are_refused_in_words() -> None:
    app = run()
    app.text_input(key="text@").set_value("word " * 2_000_000).run()
    assert not app.exception
    assert f"{MOST_CHARACTERS:,}" in told(app)


def test_an_unknown_model_in_the_link_is_named() -> None:
    app = run(model="gpt-9")
    assert not app.exception
    assert "gpt-9" in told(app)
    assert "GPT-2 small" in told(app)


def test_a_broken_bundle_gives_words_and_nothing_else_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    from pages.kit import header
    from transformer_core.untrusted.bundle_files import BundleError

    def broken(_: str) -> None:
        raise BundleError("model.safetensors is truncated")

    monkeypatch.setattr(header, "open_bundle", broken)
    app = run()
    assert not app.exception
    assert "model.safetensors is truncated" in told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_sentence_under_the_verdict_names_what_hiding_says(language: str) -> None:
    text = "A dull story with wonderful actors."
    found = word_importance(prompt=Prompt(open_bundle("sentiment"), text, 128))
    names = [text[start:end] for start, end in found.spans]
    most, least = int(np.nanargmax(found.worth)), int(np.nanargmin(found.worth))
    said = because(run(lang=language, text=text))
    assert f"<b>{names[most]}</b>" in said
    assert f"<b>{names[least]}</b>" in said
    assert words(language)["because.points"].format(count=round(100 * found.worth[most])) in said
    assert words(language)["because.points"].format(count=round(-100 * found.worth[least])) in said
    for name, worth in zip(names, found.worth, strict=True):
        label = words(language)[f"class.{open_bundle('sentiment').labels[found.winner]}"]
        finding_in_words = words(language)["because.said"].format(word=name, points=f"{100 * worth:+.1f}", label=label)
        assert escape(finding_in_words) in said


def test_a_word_that_the_text_has_twice_is_named_by_its_number() -> None:
    said = because(run(text="dull story, dull ending"))
    assert words("en")["because.nth"].format(word="dull", nth=1, count=2) in said


@pytest.mark.parametrize(
    ("worth", "said"),
    [
        ([0.12, -0.04, 0.001], "<b>good</b> pushed towards positive by 12 points, <b>odd</b> against it by 4 points."),
        ([0.12, 0.05, -0.01], "<b>good</b> pushed towards positive by 12 points and <b>odd</b> by 5 points, "),
        ([0.1204, 0.1196, 0.0], "<b>good</b> and <b>odd</b> pushed towards positive by 12 points each."),
        ([0.9, 0.01, 0.0], "<b>good</b> pushed towards positive by 90 points."),
        ([-0.01, 0.0, 0.002], "No word pushed towards positive by a point; <b>good</b> pushed against it by 1 point."),
        ([0.001, -0.002, 0.0], "No single word decides: whichever is hidden, positive stays within a point of 75.0%."),
        ([np.nan, np.nan, np.nan], words("en")["because.nothing_to_hide"].format(piece="word")),
    ],
)
def test_the_sentence_says_who_pushed_which_way(monkeypatch: pytest.MonkeyPatch, worth: list, said: str) -> None:
    spans, unknown = np.array([[0, 4], [5, 8], [9, 13]]), np.zeros(3, dtype=bool)

    def word_importance(**_: object) -> WordImportance:
        return WordImportance(spans, unknown, np.array(worth), 1, 0.75, "mask")

    monkeypatch.setattr("pages.kit.explanation.word_importance", word_importance)
    forget_answers()
    assert said in because(run(text="good odd film"))
    forget_answers()


def test_where_no_word_can_be_hidden_it_is_said() -> None:
    app = run(text="[MASK] [PAD]")
    assert not app.exception
    assert words("en")["because.nothing_to_hide"].format(piece="word") in told(app)


def test_a_part_that_is_chosen_opens_its_page_at_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.home.diagram.show_architecture", lambda *_: "classifier")
    app = run()
    assert not app.exception
    assert words("en")["encoder.heading"] in told(app)
    assert app.query_params["encoder_part"] == "sum"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_words_that_the_model_never_saw_are_counted(language: str) -> None:
    text = "这部电影的故事很无聊。"
    unknown = open_bundle("sentiment").tokenizer.encode(text).unknown
    warned = run(lang=language, text=text, model="sentiment")
    assert words(language)["text.unknown"].format(count=sum(unknown), all=len(unknown) - 2) in note(warned)
    length, _ = note(run(lang=language)).split(" · ")  # and on what it is computed
    assert length == words(language)["text.tokens"].format(count=14)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_becomes_of_a_typed_padding_token_is_said(language: str, tmp_path: Path, monkeypatch) -> None:
    key = "text.typed_padding_{}"
    assert words(language)[key.format("hidden")].format(token="[PAD]") in note(run(lang=language, text="[PAD] film"))
    written("BertForSequenceClassification", tmp_path / "tiny", num_labels=2)
    monkeypatch.setenv("VITRINE_MODELS", str(tmp_path))
    forget_models()
    read = run(lang=language, model="tiny", text="a [PAD] glass")
    assert words(language)[key.format("read")].format(token="[PAD]") in note(read)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_would_change_the_verdict_is_one_click_away(language: str) -> None:
    found = counter_examples(prompt=Prompt(open_bundle("sentiment"), DEFAULT_TEXT, 14))
    app = run(lang=language)
    piece = words(language)["piece.word"]
    said = words(language)["because.turned"].format(turns=found.turns, tried=found.tried, piece=piece)
    assert said in told(app)
    first = found.found[0]
    button = app.button(key="because_0")
    assert f"~~{first.old}~~ **{first.new}**" in button.label
    changed = words(language)["because.exchanged"].format(old=first.old, new=first.new)
    assert changed in "".join(element.proto.body for element in app.get("html"))
    button.click().run()
    assert not app.exception
    assert app.text_input[0].value == first.text
    turned = words(language)[f"class.{open_bundle('sentiment').labels[first.winner]}"]
    html = "\n".join(element.proto.body for element in app.get("html"))
    assert f"{turned} {first.probability:.1%}" in html


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_known_of_such_texts_stands_near_the_verdict(language: str) -> None:
    narrow, whole = open_bundle("sentiment").measured.fitting(("short", "negation"))
    said = told(run(lang=language, text="This is not a good film."))
    for row in (narrow, whole):
        assert f"{row.accuracy:.0%}" in said
        assert f"n = {row.texts:,}" in said
    assert narrow.data in said
    assert "n = " not in told(run(lang=language, model="gpt"))


GPT2_SMALL_CONFIG = ModelConfig(
    vocab_size=50_257, max_len=1_024, d_model=768, n_heads=12, d_ff=3_072, n_layers=12, positions="learned", pad_id=None
)


def test_gpt2_small_has_as_many_numbers_as_its_config_makes() -> None:
    with torch.device("meta"):
        model = Gpt(GPT2_SMALL_CONFIG)
    assert sum(parameter.numel() for parameter in model.parameters()) == GPT2_SMALL


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("count", "key", "times"),
    [
        (4_084_226, "fewer", "30"),
        (GPT2_SMALL * 2 // 3, "fewer", "1.5"),
        (GPT2_SMALL * 2 // 3 + 1, "alike", ""),
        (GPT2_SMALL * 3 // 2 - 1, "alike", ""),
        (GPT2_SMALL * 3 // 2, "more", "1.5"),
        (GPT2_SMALL * 3, "more", "3"),
    ],
)
def test_a_count_of_numbers_is_compared_by_the_counts(
    monkeypatch: pytest.MonkeyPatch, language: str, count: int, key: str, times: str
) -> None:
    monkeypatch.setattr("pages.home.size.t", lambda key, **values: words(language)[key].format(**values))
    said = words(language)[f"diagram.parameters_{key}"].format(count=f"{count:,}", times=times)
    assert size_in_words(count) == said


NOT_GOOD = "The film was not good at all."
GERMAN = "Der Film war überhaupt nicht gut und die Schauspieler waren langweilig."


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("page", "model", "text"),
    [
        ("translation", "translation-en-fr", NOT_GOOD),
        ("home", "sentiment", GERMAN),
        ("gpt", "gpt", GERMAN),
        ("home", "translation-en-fr", NOT_GOOD),
    ],
)
def test_a_text_outside_what_a_model_learned_is_said_at_the_answer_with_sentences_that_it_reads(
    language: str, page: str, model: str, text: str
) -> None:
    bundle, said = open_bundle(model), words(language)
    found = strangeness(prompt=Prompt(bundle, text, 96))
    usual = bundle.measured.typical_at(found.measure, found.tokens)
    assert found.value is not None
    assert usual is not None
    app = run(page, lang=language, model=model, text=text)
    measured = said[f"outside.{found.measure}"].format(
        value=f"{np.exp(found.value):,.0f}",
        median=f"{np.exp(usual.median):,.0f}",
        high=f"{np.exp(usual.high):,.0f}",
        unit=said[f"unit.{usual.unit}"],
        piece=said["piece.token"],
    )
    assert measured in note(app)
    assert 'data-loud="true"' not in line(app)  # the sentence below it is
    lead = said["outside.lead_of"].format(learned=said[f"learned.{model}"])
    assert f"**{lead}" in told(app)
    assert (said["outside.verdict"] in verdict(app)) == (model == "sentiment")
    app.button(key="readable_0").click().run()
    assert not app.exception
    assert app.text_input[0].value == min((example.text for example in SENTENCES[model]), key=len)
    assert lead not in told(app)
    assert said["outside.verdict"] not in verdict(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_names_of_data_and_of_what_one_text_of_them_is_are_in_the_language_chosen(language: str) -> None:
    app = run(lang=language, model="sentiment-zh", text="很好吃，下次再来。")
    names = {"en": ("online reviews", "characters"), "zh": ("网上评论", "字")}
    assert names[language][0] in told(app)
    assert names[language][1] in verdict(app)
    rows = [row for name in shipped_names() for row in (*open_bundle(name).measured.usual,)]
    assert {f"data.{row.data}" for row in rows} <= card_texts("zh").keys()


@pytest.mark.parametrize(("language", "said"), [("en", "## Measured quality"), ("zh", "## 测得的质量")])
def test_the_card_is_in_the_language_of_the_interface(language: str, said: str) -> None:
    app = run(lang=language, model="sentiment-zh")
    assert not app.exception
    assert open_bundle("sentiment-zh").card_in(language).strip() in [element.value for element in app.markdown]
    assert said in told(app)


def test_where_there_is_no_card_in_chinese_the_english_one_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(open_bundle("sentiment-zh"), card_zh="")
    monkeypatch.setattr("pages.kit.header.open_bundle", lambda _: own)
    app = run(lang="zh", model="sentiment-zh")
    assert not app.exception
    assert "## Measured quality" in told(app)


@pytest.mark.parametrize(
    ("probabilities", "lowest", "said"),
    [((0.7, 0.3), 0.0, "(50% to 80%)"), ((0.7, 0.3), 0.51, "(51% to 80%)"), ((0.4, 0.3, 0.3), 0.0, "(33% to 80%)")],
)
def test_no_verdict_is_less_sure_than_its_classes_allow(
    probabilities: tuple[float, ...], lowest: float, said: str
) -> None:
    row = Confidence(words=(1, 99), probability=(lowest, 0.8), texts=100, right=70)
    rows = (row, replace(row, probability=(0.8, 1.0)))
    bundle = replace(open_bundle("sentiment"), measured=Measured(sureness=rows))
    encoding = bundle.tokenizer.encode("A good film.")
    assert said in str(sureness(View(bundle, encoding), probabilities))


@pytest.mark.parametrize(("most", "endless"), [(999, False), (1_000, True), (10_000, True)])
def test_a_range_of_lengths_without_an_end_is_said_so(most: int, endless: bool) -> None:
    row = Confidence(words=(2, most), probability=(0.0, 1.0), texts=100, right=70)
    bundle = replace(open_bundle("sentiment"), measured=Measured(sureness=(row,)))
    said = sureness(View(bundle, bundle.tokenizer.encode("A good film.")), (0.7, 0.3))
    assert said is not None
    assert (f"{most}" in said.replace(",", "")) != endless


@pytest.mark.parametrize("page", ["home", "lectures"])
def test_from_where_a_person_starts_the_way_leads_to_the_first_page(page: str) -> None:
    assert words("en")["nav.tokens"] in run(page).button(key="nav_next").label
