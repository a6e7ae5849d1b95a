"""What lies beside a card, and what was measured of several models: counted as by hand, read back, checked."""

import csv
import gzip
import io
import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.helpers.bundles import refused
from tests.helpers.engine import shipped, small_bundle
from transformer_core.analysis.before.by_length import LengthMeasured
from transformer_core.analysis.gpt.ladder import LadderMeasured
from transformer_core.analysis.positions.beyond_measured import BeyondMeasured
from transformer_core.analysis.strangeness import counted, strangeness, unusual
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.evaluation.article_differences import CHOICES, FILE, ArticleMeasured, article_measured
from transformer_core.evaluation.classifier import measure_classifier
from transformer_core.evaluation.induction import InductionMeasured
from transformer_core.evaluation.ngrams import BEFORE, KneserNey
from transformer_core.evaluation.weak_sides import features_of, main, measure_on_each, measure_typical
from transformer_core.examples import Example
from transformer_core.measured import (
    FEWEST,
    MEASURED,
    Confidence,
    HeadLook,
    Measured,
    Slice,
    Trained,
    TypicalRange,
    read_measured,
    write_measured,
)
from transformer_core.measured_files import FOLDER, read_shipped, write_shipped
from transformer_core.prompt import Prompt
from transformer_core.recipes.article import FILE as REVIEWS
from transformer_core.recipes.article import main as measure_article
from transformer_core.recipes.article import spec_of
from transformer_core.recipes.bert import HIDDEN
from transformer_core.recipes.texts import read_opinions
from transformer_core.recipes.translation import PAIRS
from transformer_core.training.runs.presets import ARTICLE, IMDB
from transformer_core.training.runs.settings import differences, settings
from transformer_core.untrusted.bundle_files import BundleError

SHORT_AND_NOT = Slice("SST", "sentence", ("short", "negation"), 240, 170)
SURENESS = (
    Confidence((1, 6), (0.0, 0.6), 40, 20),
    Confidence((1, 6), (0.6, 0.9), 10, 7),
    Confidence((1, 6), (0.9, 1.0), 25, 24),
    Confidence((7, 12), (0.0, 0.6), 5, 3),
    Confidence((7, 12), (0.6, 1.0), 6, 5),
    Confidence((13, 25), (0.0, 1.0), 90, 80),
)
KNOWN = Measured(
    (Slice("IMDB", "review", (), 2500, 2145), SHORT_AND_NOT, Slice("SST", "sentence", ("short",), 900, 700)),
    (TypicalRange("IMDB", "review", "rarity", (61, 10_000), 500, 1.1, 1.4),),
    trained=(
        Trained("pretraining", 8_265, 40.5, 41.25, "NVIDIA H100 80GB HBM3", "bfloat16"),
        Trained("training", 17_549, 78.0, 0.0, "cpu", ""),
    ),
    sureness=SURENESS,
    verse=(HeadLook("rhyme", 2, 5, 0.851, 0.04, -0.0012, 1800),),
    learned=(0, 3, 12),
)


CAPTIONS = PAIRS["en-fr"].sentences
GERMAN = "Der Film war überhaupt nicht gut und die Schauspieler waren langweilig."
FINANCE = "Quarterly revenue exceeded consensus expectations"
TEXTS = {  # like what each model learned, at most one of them outside it; and outside it, all of them
    "translation-en-fr": (
        [source for source in CAPTIONS if "time" not in source and "committee" not in source],
        ["The film was not good at all.", "I would like to know what time it is.", GERMAN, FINANCE, "这部电影不好看。"],
    ),
    "translation-en-zh": (PAIRS["en-zh"].sentences, [GERMAN, FINANCE]),
    "translation-zh-en": (
        PAIRS["zh-en"].sentences,
        ["The film was not good at all.", "量子力学描述微观粒子的运动规律。"],
    ),
    "sentiment": ([text for text, _ in read_opinions("en")], [GERMAN, FINANCE, "这部电影不好看。"]),
    "bert": (list(HIDDEN[:9]), [GERMAN, FINANCE, "这部电影一点也不好看。"]),
}


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
    whole, *others = measure_on_each(sentiment, [("own", "sentence", examples)]).slices
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


def test_it_lies_beside_the_card_and_is_read_back(tmp_path: Path) -> None:
    save(replace(small_bundle(), measured=KNOWN), tmp_path / "glass")
    assert load(tmp_path / "glass").measured == KNOWN
    (tmp_path / "glass" / MEASURED).write_text("[]")
    refused(tmp_path / "glass", f"glass/{MEASURED}")
    save(small_bundle(), tmp_path / "glass")
    assert not (tmp_path / "glass" / MEASURED).exists()


def test_the_shipped_reviewer_knows_its_weak_sides(sentiment: Bundle) -> None:
    rows = {(row.data, row.features): row for row in sentiment.measured.slices}
    assert rows["IMDB", ()].texts == 2500
    assert f"accuracy {rows['IMDB', ()].accuracy:.1%}" in sentiment.card
    assert rows["SST", ("negation",)].texts >= 100
    assert sentiment.measured.fitting(("short", "negation"))[0].features == ("short", "negation")


def test_strangeness_of_next_tokens_is_the_mean_of_their_surprise() -> None:
    bundle = shipped("gpt")
    text = "A man in a red shirt is riding a horse."
    ids = torch.tensor([bundle.tokenizer.encode(text).ids])
    with torch.no_grad():
        expected = F.cross_entropy(bundle.model(ids)[0, :-1], ids[0, 1:])
    assert strangeness(prompt=Prompt(bundle, text, 64)).value == pytest.approx(float(expected), abs=1e-4)
    assert strangeness(prompt=Prompt(bundle, "A man is", 64)).value is None


def test_rarity_is_the_surprise_of_the_shares_that_tokens_have_in_what_was_learned(sentiment: Bundle) -> None:
    learned = ["a dull film", "a good film!"]
    counts = counted(sentiment, learned)
    assert sum(counts) == 7
    bundle = replace(sentiment, measured=Measured(learned=counts))
    shares = [(n + 0.5) / (7 + 0.5 * len(counts)) for n in (2, 1, 0)]  # a, good, story
    found = strangeness(prompt=Prompt(bundle, "a good story", 32))
    expected = -sum(map(math.log, shares)) / 3
    assert (found.measure, found.value, found.tokens) == ("rarity", pytest.approx(expected), 3)
    assert strangeness(prompt=Prompt(bundle, "good film", 32)).value is None
    assert strangeness(prompt=Prompt(replace(bundle, measured=Measured()), "a good story", 32)).value is None


def test_what_is_usual_lies_below_what_is_strange() -> None:
    bundle = shipped("gpt")
    texts = ["A man in a red shirt is riding a horse.", "Two dogs are playing on the beach with a ball."] * 4
    (usual,) = measure_typical(bundle, texts, data="own", unit="caption")
    assert (
        usual.median
        <= usual.high
        < strangeness(prompt=Prompt(bundle, "Quarterly revenue exceeded consensus expectations", 64)).value
    )


def test_rarity_is_usual_by_the_length_of_texts_where_there_are_enough(sentiment: Bundle) -> None:
    words = ["the", "film", "was", "good", "and", "dull", "but", "never", "long"]
    short, long = ([" ".join(random.Random(seed).choices(words, k=k)) for seed in range(60)] for k in (5, 10))
    bundle = replace(sentiment, measured=Measured(learned=counted(sentiment, short + long)))
    rows = measure_typical(bundle, [*short, *long, "film " * 20], data="own", unit="sentence")
    assert [(row.tokens, row.texts) for row in rows] == [((1, 6), 60), ((7, 12), 60)]
    for row, texts in zip(rows, (short, long), strict=True):
        values = [strangeness(prompt=Prompt(bundle, text, 32)).value or 0 for text in texts]
        assert sum(value > row.high for value in values) <= 0.05 * len(values)


def test_a_text_is_held_against_texts_of_its_length_or_of_the_nearest() -> None:
    rows = [
        TypicalRange("own", "line", "rarity", tokens, 40, 1.0, high)
        for tokens, high in (((7, 12), 2.0), ((13, 25), 3.0))
    ]
    rows.append(replace(rows[0], data="other", high=2.5))
    measured = Measured(usual=tuple(rows))
    assert [measured.typical_at("rarity", n).high for n in (2, 12, 13, 400)] == [2.5, 2.5, 3.0, 3.0]
    assert measured.typical_at("nats_a_token", 9) is None


def test_a_text_longer_than_all_lengths_that_were_measured_is_outside(sentiment: Bundle) -> None:
    rows = tuple(TypicalRange("own", "line", "rarity", tokens, 40, 1.0, 99.0) for tokens in ((1, 6), (7, 12)))
    bundle = replace(sentiment, measured=replace(sentiment.measured, usual=rows))
    counts = {n: strangeness(prompt=Prompt(bundle, "good " * n, 64)) for n in (6, 12, 13)}
    assert {n: unusual(bundle, found) for n, found in counts.items()} == {6: None, 12: None, 13: rows[1]}


@pytest.mark.parametrize("name", ["translation-en-fr", "translation-en-zh", "translation-zh-en", "sentiment", "bert"])
def test_texts_like_those_learned_are_seldom_outside_and_others_are(name: str) -> None:
    bundle, (inside, others) = shipped(name), TEXTS[name]

    def is_outside(text: str) -> bool:
        found = strangeness(prompt=Prompt(bundle, text, bundle.config.max_len))
        return unusual(bundle, found) is not None

    assert sum(map(is_outside, inside)) <= 1
    assert not [text for text in others if not is_outside(text)]


def test_the_command_writes_and_refuses_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = shipped("gpt-char")
    save(Bundle("own", bundle.model, bundle.tokenizer), tmp_path / "own")
    (tmp_path / "lines.txt").write_text("To be or not to be\nThat is the question\nno\n")
    assert main([str(tmp_path / "own"), "--of", "Hamlet", "line", str(tmp_path / "lines.txt")]) == 0
    assert load(tmp_path / "own").measured.usual[0].texts == 2
    assert main([str(tmp_path / "own"), "--of", "Hamlet", "novel", str(tmp_path / "lines.txt")]) == 2
    assert "UNIT='novel' must be one of" in capsys.readouterr().err


@pytest.mark.parametrize("order", [1, -1])
def test_a_verdict_is_right_as_often_as_those_of_its_range_and_length(order: int) -> None:
    assert Measured(sureness=SURENESS[::order]).sure(3, 0.55) == SURENESS[0]
    assert Measured(sureness=SURENESS[::order]).sure(25, 0.99) == SURENESS[5]


def test_the_ranges_beside_it_are_taken_in_where_there_are_few_texts() -> None:
    assert KNOWN.sure(6, 0.95) == Confidence((1, 6), (0.6, 1.0), 35, 31)
    assert KNOWN.sure(6, 0.6) == Confidence((1, 6), (0.0, 1.0), 75, 51)
    assert KNOWN.sure(1, 1.0) == KNOWN.sure(1, 0.9)  # 1 is in the last range


def test_what_is_not_known_is_none() -> None:
    assert KNOWN.sure(8, 0.7) is None  # 11 texts in all
    assert sum(row.texts for row in SURENESS if row.words == (7, 12)) < FEWEST
    assert KNOWN.sure(40, 0.7) is None
    assert Measured().sure(3, 0.7) is None


@pytest.mark.parametrize(
    "content", ["[]", '{"learned": [-1]}', "{", '{"slices": 3}', '{"usual": [[]]}', "[" * 100_000, " " * (257 << 10)]
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / MEASURED).write_text(content)
    with pytest.raises(BundleError, match=MEASURED):
        read_measured(tmp_path)


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("slices", {"right": 2501}, "right=2501 must be at most texts=2500"),
        ("slices", {"texts": 0}, "texts=0 must be a whole number from 1"),
        ("slices", {"texts": True}, "texts=True"),
        ("slices", {"texts": 10**12}, "texts="),
        ("slices", {"features": ["negation", "short"]}, "features="),
        ("slices", {"features": ["<b>"]}, "features="),
        ("slices", {"unit": "novel"}, "unit='novel'"),
        ("slices", {"data": "x" * 81}, "data="),
        ("slices", {"data": "a\u202eb"}, "data="),
        ("usual", {"median": "NaN"}, "median="),
        ("usual", {"median": 2.0}, "median"),
        ("usual", {"high": 1e9}, "high"),
        ("usual", {"measure": "tears"}, "measure='tears'"),
        ("usual", {"tokens": [1]}, r"tokens=\[1\] must be a list of two numbers"),
        ("trained", {"minutes": -1}, "minutes=-1 must be a number from 0"),
        ("trained", {"cpu_minutes": None}, "cpu_minutes=None"),
        ("trained", {"steps": 0}, "steps=0 must be a whole number from 1"),
        ("trained", {"device": ""}, "device=''"),
        ("trained", {"precision": "a\u202eb"}, "precision="),
        ("trained", {"stage": "x" * 81}, "stage="),
        ("sureness", {"right": 41}, "right=41 must be at most texts=40"),
        ("sureness", {"words": [1]}, r"words=\[1\] must be a list of two numbers"),
        ("sureness", {"probability": [0, 2]}, "probability=2 must be a number from 0 to 1"),
        ("verse", {"look": "below"}, "look='below' must be one of above, rhyme"),
        ("verse", {"weight": 1.5}, "weight=1.5 must be a number from 0 to 1"),
    ],
)
def test_impossible_rows_are_refused(tmp_path: Path, name: str, row: dict, said: str) -> None:
    write_measured(tmp_path, KNOWN)
    found = json.loads((tmp_path / MEASURED).read_text())
    found[name][0] |= row
    (tmp_path / MEASURED).write_text(json.dumps(found))
    with pytest.raises(BundleError, match=said):
        read_measured(tmp_path)


ROWS = [[1, 2, 3, 1, 2, 4], [1, 2, 3, 5], [2, 3, 1, 2, 3], [6]]
VOCAB_SIZE = 9


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("context", [(2, 1, 2), (1, 2, 3), (4, 4, 4), (8, 7, 6), (BEFORE, BEFORE, BEFORE), (0, 1, 2)])
def test_probabilities_of_all_tokens_add_up_to_1(order: int, context: tuple[int, ...]) -> None:
    model = KneserNey(ROWS, order=order, vocab_size=VOCAB_SIZE)
    context = context[3 - (order - 1) :]
    probabilities = [model.probability(word, context) for word in range(VOCAB_SIZE)]
    assert sum(probabilities) == pytest.approx(1.0)
    assert all(chance > 0 for chance in probabilities)


def test_a_trigram_that_was_seen_is_likelier_than_one_that_was_not() -> None:
    model = KneserNey(ROWS, order=3, vocab_size=VOCAB_SIZE)
    seen = model.probability(3, (1, 2))
    assert seen > model.probability(4, (1, 2)) > model.probability(5, (1, 2)) > model.probability(0, (1, 2))
    assert model.probability(6, (BEFORE, BEFORE)) > model.probability(4, (BEFORE, BEFORE))


def test_below_the_highest_order_a_token_counts_by_how_many_tokens_stand_before_it() -> None:
    """5 follows 4 alone, however often; 6 follows three tokens, once each (Kneser and Ney 1995)."""
    model = KneserNey([[4, 5]] * 6 + [[1, 6], [2, 6], [3, 6]], order=2, vocab_size=VOCAB_SIZE)
    assert model.probability(6, (7,)) > model.probability(5, (7,))


def test_surprise_is_the_mean_over_tokens_but_the_given_ones() -> None:
    model = KneserNey(ROWS, order=2, vocab_size=VOCAB_SIZE)
    expected = -(math.log(model.probability(2, (1,))) + math.log(model.probability(3, (2,)))) / 2
    assert model.nats([[1, 2, 3]]) == pytest.approx(expected)
    assert model.nats([[1, 2, 3]], given=0) == pytest.approx(
        (2 * expected - math.log(model.probability(1, (BEFORE,)))) / 3
    )
    assert model.nats(ROWS) < math.log(VOCAB_SIZE)


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="order=0 must be at least 1"):
        KneserNey(ROWS, order=0, vocab_size=VOCAB_SIZE)
    with pytest.raises(ValueError, match="rows hold no token to count"):
        KneserNey([[]], order=2, vocab_size=VOCAB_SIZE)
    with pytest.raises(ValueError, match="rows hold no token to foresee"):
        KneserNey(ROWS, order=2, vocab_size=VOCAB_SIZE).nats([[1]])


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("length_en_fr", LengthMeasured),
        ("ladder", LadderMeasured),
        ("beyond_trained_length", BeyondMeasured),
        ("induction", InductionMeasured),
        ("article_differences", ArticleMeasured),
    ],
)
def test_what_is_written_is_read(name: str, form: type, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.json"
    write_shipped(tmp_path / "copy.json", read_shipped(path, form))
    assert (tmp_path / "copy.json").read_bytes() == path.read_bytes()


def test_what_is_shipped_has_every_choice_from_every_seed() -> None:
    found = article_measured()
    for choice in ("ours", *CHOICES, "all"):
        assert [row.seed for row in found.of(choice)] == [0, 1, 2]
    assert found.examples == ARTICLE.data.examples
    for row in found.rows:  # each share is one of as many reviews as its row says
        assert row.held_out == pytest.approx(round(row.held_out * row.set_aside) / row.set_aside, abs=6e-5)
    assert found.mean("ours")[1] > found.mean("all")[1] + 0.1


def test_each_choice_takes_over_its_settings_and_no_others() -> None:
    ours, theirs = settings(spec_of("ours", 0)), settings(ARTICLE)
    for choice, names in CHOICES.items():
        apart = differences(spec_of("ours", 0), spec_of(choice, 0))
        assert apart.keys() <= set(names)
        assert apart
        assert all(after == theirs[name] for name, (_, after) in apart.items())
    named = {name for names in CHOICES.values() for name in names}
    left = {name for name in differences(IMDB, ARTICLE) if name not in named}
    sizes = {"examples", "held_out", "d_model", "d_ff", "n_layers", "max_len", "epochs", "frames", "points"}
    assert left <= sizes | {"padding_mask", "dropout_at"}, ours


@pytest.mark.nightly
def test_the_command_measures_and_writes_what_is_read_back(tmp_path: Path) -> None:
    rows = [
        (f"a {word} film number {n}, {word} all over", label)
        for n in range(60)
        for label, word in enumerate(("bad", "fine"))
    ]
    text = io.StringIO()
    csv.writer(text).writerows([("text", "label"), *rows])
    (tmp_path / REVIEWS).write_bytes(gzip.compress(text.getvalue().encode()))
    out = tmp_path / "out.json"
    assert measure_article(["--data", str(tmp_path), "--out", str(out), "--quick"]) == 0
    found = article_measured(out)
    assert len(found.rows) == len(CHOICES) + 2
    assert all(0 <= row.held_out <= 1 for row in found.rows)
    assert measure_article(["--data", str(tmp_path / "nowhere"), "--out", str(out)]) == 2


@pytest.mark.parametrize("change", [{"rows": []}, {"rows": [{"choice": "x"}]}, {"epochs": 0}, {"command": 3}])
def test_a_damaged_file_is_refused_by_its_name(tmp_path: Path, change: dict) -> None:
    path = tmp_path / "article.json"
    path.write_text(json.dumps(json.loads(FILE.read_text()) | change))
    with pytest.raises(ValueError, match=r"^article.json: "):
        article_measured(path)
