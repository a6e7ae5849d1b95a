"""The parts on names and answers with small untrained heads, and what they say where the model has no such head."""

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.bert.answers import TOP
from pages.bert.figures.tokens import bounds_chart, hues_of_kinds, labels_figure, marked_text
from pages.kit.asking import ask
from pages.kit.models import MORE_MODELS, open_bundle
from pages.kit.number_format import percent
from pages.language import prose, words
from tests.helpers.engine import lively
from tests.helpers.pages import asks, repeats, run, told
from transformer_core.analysis.bert.answers import find_answers
from transformer_core.analysis.bert.token_labels import token_labels
from transformer_core.bundle import MODELS, Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

TEXTS = ["A man in a red shirt is riding a horse.", "Two dogs run on the beach."] * 3
TEXT = TEXTS[0]
QUESTION = "Who is riding?"
LABELS = ("O", "B-PER", "I-PER")
NAMES = {"names": "tiny-tagger", "answers": "tiny-answerer"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small untrained model of each head."""
    place = tmp_path_factory.mktemp("heads")
    tokenizer = Tokenizer.train("wordpiece", TEXTS, vocab_size=52, lowercase=True, min_frequency=1)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "max_len": 48, "dropout": 0.0, "n_segments": 2}
    for kind in ("tagger", "answerer"):
        torch.manual_seed(0)
        model = lively(MODELS[kind](ModelConfig(vocab_size=tokenizer.vocab_size, n_classes=len(LABELS), **sizes)))
        labels = LABELS if kind == "tagger" else ()
        save(Bundle(f"tiny-{kind}", model, tokenizer, labels), place / f"tiny-{kind}")
    return place


@pytest.fixture
def heads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the app find them."""
    monkeypatch.setenv(MORE_MODELS, str(folder))


def opened(part: str, **query: str) -> AppTest:
    app = run("bert", **{"bert_part": part, "text": TEXT} | query)
    assert not app.exception, app.exception
    assert not app.error
    return app


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", NAMES)
def test_without_such_a_checkpoint_a_line_says_how_to_open_one(part: str, language: str) -> None:
    app = opened(part, lang=language)
    kind = {"names": "tagger", "answers": "answerer"}[part]
    said = words(language)[f"bert.needs_{kind}"].format(name=app.selectbox[0].value)
    assert said in told(app)
    assert not app.selectbox[0].value.startswith("tiny")


@pytest.mark.usefixtures("heads")
def test_a_button_switches_to_such_a_checkpoint_where_there_is_one() -> None:
    app = opened("names", model="bert")
    app.button(key="offer").click().run()
    assert not app.exception
    assert app.selectbox[0].value == "tiny-tagger"
    app = opened("fill", model="tiny-tagger")
    assert words("en")["bert.needs_bert"].format(name="tiny-tagger") in told(app)


@pytest.mark.usefixtures("heads")
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", NAMES)
def test_both_parts_open_in_both_languages_with_the_glass(part: str, language: str) -> None:
    app = opened(part, lang=language, model=NAMES[part], glass_open="true")
    assert prose(language, "bert")[f"look_{part}"] in told(app)


@pytest.mark.usefixtures("heads")
def test_words_and_their_labels_are_the_model_s() -> None:
    app = opened("names", model="tiny-tagger")
    found = token_labels(prompt=Prompt(open_bundle("tiny-tagger"), TEXT, 64))
    table = next(block.value for block in app.markdown if block.value.startswith("| word"))
    for word, label, sure in zip(found.words, found.chosen, found.sure, strict=True):
        assert any(f"| {word} |" in line and f"{LABELS[label]} | {sure:.1%}" in line for line in table.splitlines())
    assert found.names
    for name in found.names:
        assert any(f"{name.kind} {name.probability:.0%}" in part.proto.body for part in app.get("html"))
    apart, several = found.disagreeing, sum(len(own) > 1 for own in found.places)
    assert several
    asks(app)[0].set_value("all").run()
    assert words("en")["bert.pieces_measured"].format(apart=apart, count=several) in told(app)


@pytest.mark.usefixtures("heads")
def test_the_best_spans_are_the_model_s() -> None:
    app = opened("answers", model="tiny-answerer", bert_question=QUESTION)
    found = find_answers(bundle=open_bundle("tiny-answerer"), question=QUESTION, passage=TEXT, n_tokens=48, top=TOP)
    table = next(block.value for block in app.markdown if block.value.startswith("| possible"))
    assert table.splitlines()[2:] == [f"| {span.text} | {percent(span.probability)} |" for span in found.spans]
    assert percent(found.nothing) in told(app)
    app = opened("answers", model="tiny-answerer", bert_question="")
    assert words("en")["bert.question_empty"] in told(app)


@pytest.mark.usefixtures("heads")
@pytest.mark.parametrize("text", ["🙂", "电影很好看", "a dog " * 90, "[MASK]", "<b>$x$ | a</b>"])
@pytest.mark.parametrize("part", NAMES)
def test_any_text_is_read(part: str, text: str) -> None:
    opened(part, model=NAMES[part], text=text, bert_question=text)


@pytest.mark.usefixtures("heads")
def test_the_scripts_compute_the_same() -> None:
    for answer in (
        ask(token_labels, prompt=Prompt(open_bundle("tiny-tagger"), TEXT, 64)),
        ask(find_answers, bundle=open_bundle("tiny-answerer"), question=QUESTION, passage=TEXT, n_tokens=48, top=3),
    ):
        repeats(answer.script, answer.arrays)


@pytest.mark.usefixtures("heads")
def test_the_figures_hold_the_numbers() -> None:
    found = token_labels(prompt=Prompt(open_bundle("tiny-tagger"), TEXT, 64))
    strings = {"axis_token": "t", "axis_label": "l", "labels_title": "p", "axis_probability": "p"}
    figure = labels_figure(found.tokens, found.labels, found.probabilities, strings)
    assert figure.panels[0].values.shape == (len(LABELS), len(found.tokens))
    spans = find_answers(bundle=open_bundle("tiny-answerer"), question="Who?", passage=TEXT, n_tokens=48, top=1)
    said = {name: name for name in ("axis_token", "axis_bounds", "bound_start", "bound_end", "axis_probability")}
    best = (spans.spans[0].first, spans.spans[0].last)
    chart = bounds_chart(spans.tokens, spans.start, spans.end, said, best=best).to_dict()
    rows = [row for data in chart["datasets"].values() for row in data if "chance" in row]
    assert [row["chance"] for row in rows] == pytest.approx([*spans.start, *spans.end])
    assert [row["height"] for row in rows] == pytest.approx([*spans.start, *-spans.end])
    marked = marked_text("<Ann> & Bo", [(1, 4, "PER", "PER 9%")], hues_of_kinds(["O", "PER"]))
    assert "&lt;" in marked
    assert ">Ann<" in marked
    assert "&gt; &amp; Bo" in marked
