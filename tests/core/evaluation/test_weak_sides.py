"""Weak sides are counted on labelled texts, lie beside the card, and a file that says what cannot be is refused."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.helpers import ROOT
from tests.helpers.bundles import refused
from transformer_core.analysis.strangeness import strangeness
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.evaluation.weak_sides import features_of, main, measure_slices, measure_usual
from transformer_core.measured import MEASURED, Measured, Slice, Usual
from transformer_core.training.examples import Example

CHECKPOINTS = ROOT / "assets" / "checkpoints"
SHORT_AND_NOT = Slice("SST", "sentence", ("short", "negation"), 240, 170)
KNOWN = Measured(
    (Slice("IMDB", "review", (), 2500, 2145), SHORT_AND_NOT, Slice("SST", "sentence", ("short",), 900, 700)),
    (Usual("IMDB", "review", "tokens_a_word", 500, 1.1, 1.4),),
)


@pytest.fixture(scope="module")
def sentiment() -> Bundle:
    return load(CHECKPOINTS / "sentiment", device="cpu")


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("It isn't good", ("short", "negation")),
        ("Never dull, but is it good?", ("short", "negation", "contrast", "question")),
        ("A knot of notes, and nobility", ("short",)),
        ("good " * 13, ()),
        ("good " * 400, ("cut",)),
        ("好 好 好 good", ("short", "unknown")),
    ],
)
def test_features_are_found_in_the_text(sentiment: Bundle, text: str, features: tuple[str, ...]) -> None:
    assert features_of(sentiment.tokenizer.encode(text, max_len=256)) == features


def test_slices_count_what_evaluate_counts(sentiment: Bundle) -> None:
    examples = [Example(f"This film is not {word}.", label) for word, label in (("good", 0), ("bad", 1))] * 20
    examples += [Example(f"A {word} film " * 8, label) for word, label in (("great", 1), ("dull", 0))] * 5
    whole, *others = measure_slices(sentiment, examples, data="own", unit="sentence")
    assert (whole.features, whole.texts) == ((), len(examples))
    assert whole.accuracy == pytest.approx(measure_classifier(sentiment, examples)["accuracy"])
    assert {row.features: row.texts for row in others} == {("short",): 40, ("negation",): 40, ("short", "negation"): 40}


def test_an_interval_is_wilsons() -> None:
    low, high = Slice("own", "sentence", (), 10, 10).interval
    assert (low, high) == (pytest.approx(10 / (10 + 1.959964**2)), pytest.approx(1.0))
    low, high = Slice("own", "sentence", (), 240, 170).interval
    assert low < 170 / 240 < high
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.7083 * 0.2917 / 240), abs=0.003)


def test_the_narrowest_sort_speaks_and_then_all() -> None:
    assert KNOWN.fitting(("short", "negation", "question")) == (SHORT_AND_NOT, KNOWN.slices[0])
    assert KNOWN.fitting(("short",), "review")[0].unit == "sentence"  # nothing else is known
    assert KNOWN.fitting(()) == KNOWN.slices[:1]
    assert Measured().fitting(("short",)) == ()


def test_it_lies_beside_the_card_and_is_read_back(tmp_path: Path, sentiment: Bundle) -> None:
    own = Bundle("glass", sentiment.model, sentiment.tokenizer, sentiment.labels, measured=KNOWN)
    save(own, tmp_path / "glass")
    assert load(tmp_path / "glass").measured == KNOWN
    save(Bundle("glass", sentiment.model, sentiment.tokenizer, sentiment.labels), tmp_path / "glass")
    assert not (tmp_path / "glass" / MEASURED).exists()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"right": 241}, "right=241 must be at most texts=240"),
        ({"texts": 0}, "texts=0 must be a whole number from 1"),
        ({"texts": True}, "texts=True"),
        ({"texts": 10**12}, "texts="),
        ({"features": ["negation", "short"]}, "features="),
        ({"features": ["<b>"]}, "features="),
        ({"unit": "novel"}, "unit='novel'"),
        ({"data": "x" * 81}, "data="),
        ({"data": "a\u202eb"}, "data="),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, sentiment: Bundle, row: dict, said: str) -> None:
    folder = tmp_path / "glass"
    save(Bundle("glass", sentiment.model, sentiment.tokenizer, sentiment.labels, measured=KNOWN), folder)
    found = json.loads((folder / MEASURED).read_text())
    found["slices"][1] |= row
    (folder / MEASURED).write_text(json.dumps(found))
    refused(folder, f"glass/{MEASURED}", said)


@pytest.mark.parametrize("content", ["[]", "{", '{"slices": 3}', '{"usual": [[]]}', "[" * 100_000, " " * (257 << 10)])
def test_a_damaged_file_is_refused(tmp_path: Path, sentiment: Bundle, content: str) -> None:
    folder = tmp_path / "glass"
    save(Bundle("glass", sentiment.model, sentiment.tokenizer, sentiment.labels), folder)
    (folder / MEASURED).write_text(content)
    refused(folder, f"glass/{MEASURED}")


@pytest.mark.parametrize("values", [{"median": "NaN"}, {"median": 2.0}, {"high": 1e9}, {"measure": "tears"}])
def test_what_is_usual_is_checked(tmp_path: Path, sentiment: Bundle, values: dict) -> None:
    folder = tmp_path / "glass"
    save(Bundle("glass", sentiment.model, sentiment.tokenizer, sentiment.labels, measured=KNOWN), folder)
    found = json.loads((folder / MEASURED).read_text())
    found["usual"][0] |= values
    (folder / MEASURED).write_text(json.dumps(found))
    refused(folder, f"glass/{MEASURED}")


def test_the_shipped_reviewer_knows_its_weak_sides(sentiment: Bundle) -> None:
    rows = {(row.data, row.features): row for row in sentiment.measured.slices}
    assert rows["IMDB", ()].texts == 2500
    assert f"accuracy {rows['IMDB', ()].accuracy:.1%}" in sentiment.card
    assert rows["SST", ("negation",)].texts >= 100
    assert sentiment.measured.fitting(("short", "negation"))[0].features == ("short", "negation")


def test_strangeness_of_next_tokens_is_the_mean_of_their_surprise() -> None:
    bundle = load(CHECKPOINTS / "gpt", device="cpu")
    text = "A man in a red shirt is riding a horse."
    ids = torch.tensor([bundle.tokenizer.encode(text).ids])
    with torch.no_grad():
        expected = F.cross_entropy(bundle.model(ids)[0, :-1], ids[0, 1:])
    assert strangeness(bundle=bundle, text=text, n_tokens=64).value == pytest.approx(float(expected), abs=1e-4)
    assert strangeness(bundle=bundle, text="A man is", n_tokens=64).value is None


def test_strangeness_of_words_counts_their_tokens(sentiment: Bundle) -> None:
    pieces = len(sentiment.tokenizer.encode("phenomenologically").ids) - 2
    found = strangeness(bundle=sentiment, text="a phenomenologically dull film!", n_tokens=32)
    assert (found.measure, found.value) == ("tokens_a_word", (3 + pieces) / 4)
    assert strangeness(bundle=sentiment, text="?!", n_tokens=32).value is None


def test_what_is_usual_lies_below_what_is_strange() -> None:
    bundle = load(CHECKPOINTS / "gpt", device="cpu")
    texts = ["A man in a red shirt is riding a horse.", "Two dogs are playing on the beach with a ball."] * 4
    usual = measure_usual(bundle, texts, data="own", unit="caption")
    assert usual is not None
    assert (
        usual.median
        <= usual.high
        < strangeness(bundle=bundle, text="Quarterly revenue exceeded consensus expectations", n_tokens=64).value
    )


def test_the_command_writes_and_refuses_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = load(CHECKPOINTS / "gpt-char", device="cpu")
    save(Bundle("own", bundle.model, bundle.tokenizer), tmp_path / "own")
    (tmp_path / "lines.txt").write_text("To be or not to be\nThat is the question\nno\n")
    assert main([str(tmp_path / "own"), "--of", "Hamlet", "line", str(tmp_path / "lines.txt")]) == 0
    assert load(tmp_path / "own").measured.usual[0].texts == 2
    assert main([str(tmp_path / "own"), "--of", "Hamlet", "novel", str(tmp_path / "lines.txt")]) == 2
    assert "UNIT='novel' must be one of" in capsys.readouterr().err
