"""What order is worth, and what happens beyond the trained length."""

import gzip
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers import nightly_but
from tests.helpers.engine import TODAY, close, exactly, first_of, made, tiny
from transformer_core.analysis.positions import beyond
from transformer_core.analysis.positions.beyond import LIVE, SCHEMES, beyond_live, train_short
from transformer_core.analysis.positions.beyond_measured import FILE, beyond_measured, beyond_shipped
from transformer_core.analysis.positions.data_and_length import data_and_length
from transformer_core.analysis.positions.order_cases import best_language, cases_of_reviews, cases_of_text
from transformer_core.analysis.positions.order_effect import (
    TREATMENTS,
    order_edits,
    order_effect_here,
    order_effect_on_set,
    shuffled_order,
)
from transformer_core.bundle import Bundle
from transformer_core.generation import greedy
from transformer_core.layers.positions import ROTARY, Rotary, rotate
from transformer_core.models import Bert, Classifier, Gpt, TokenClassifier, Translation
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.recipes import beyond as command
from transformer_core.text import Tokenizer
from transformer_core.training.corpora.reviews import reviews, written_reviews

POSITIONS = ("sinusoidal", "sinusoidal_doubled", "learned", "rotary", "alibi", "relative", "none")
IDS = torch.randint(1, 13, (3, 7), generator=torch.Generator().manual_seed(2))
LABELS = ("negative", "positive")


def bundle_of(kind: type, tokenizer: Tokenizer, labels: tuple[str, ...] = (), **changes) -> Bundle:
    """Return a bundle of a tiny lively model that reads with this tokenizer."""
    model = made(kind, vocab_size=tokenizer.vocab_size, max_len=40, **changes)
    return Bundle("tiny", model, tokenizer, labels)


@pytest.fixture(scope="module")
def english() -> Tokenizer:
    texts = [example.text for example in reviews("en", train=60, held_out=0)[0]]
    return Tokenizer.train("wordpiece", texts, vocab_size=300, lowercase=True)


TURNS = {name: Rotary.of_layer(tiny(**TODAY[name]), 1) for name in ("llama", "gemma3", "neox", "llama3", "yarn")}


@pytest.mark.parametrize("rotary", [ROTARY, *TURNS.values()], ids=["paper", *TURNS])
def test_turning_back_undoes_the_rotation(rotary: Rotary) -> None:
    x = torch.randn(2, 3, 9, 8, generator=torch.Generator().manual_seed(0))
    close(rotate(rotate(x, rotary=rotary), rotary=rotary, back=True), x)


def test_special_tokens_keep_their_places() -> None:
    special = (True, False, False, True, False, False, True)
    order = shuffled_order(special, 3)
    assert sorted(order.tolist()) == list(range(7))
    assert [int(order[place]) for place in (0, 3, 6)] == [0, 3, 6]
    assert torch.equal(order, shuffled_order(special, 3))


@pytest.mark.parametrize("kind", [Classifier, Bert])
@pytest.mark.parametrize("scheme", POSITIONS)
def test_to_an_encoder_shuffled_positions_are_shuffled_tokens(kind: type, scheme: str) -> None:
    model = made(kind, positions=scheme, pooling="mean")
    order = shuffled_order((True, *[False] * 6), 1)
    positions, _ = capture(model, IDS, sites=(), edits=order_edits(model.config, order))
    tokens, _ = capture(model, IDS[:, order.argsort()], sites=())
    ours, theirs = first_of(positions), first_of(tokens)
    close(ours, theirs if kind is Classifier else theirs[:, order])


@pytest.mark.parametrize("scheme", POSITIONS)
def test_without_positions_an_encoder_sees_a_bag(scheme: str) -> None:
    model = made(Classifier, positions=scheme)
    order = shuffled_order((True, *[False] * 6), 1)
    edits = order_edits(model.config, None)
    one, _ = capture(model, IDS, sites=(), edits=edits)
    other, _ = capture(model, IDS[:, order], sites=(), edits=edits)
    close(one, other)


@pytest.mark.parametrize("changes", [*({"positions": scheme} for scheme in POSITIONS), *TODAY.values()])
def test_the_order_as_it_is_changes_nothing(changes: dict) -> None:
    model = made(Gpt, **changes)
    usual, _ = capture(model, IDS, sites=())
    edited, _ = capture(model, IDS, sites=(), edits=order_edits(model.config, torch.arange(7)))
    close(usual, edited)


@pytest.mark.parametrize("scheme", nightly_but(POSITIONS, POSITIONS[::3]))
@pytest.mark.parametrize("kind", [Classifier, Gpt, Bert, Translation])
def test_every_kind_and_scheme_is_measured(kind: type, scheme: str, english: Tokenizer) -> None:
    bundle = bundle_of(kind, english, LABELS if kind is Classifier else (), positions=scheme)
    found = order_effect_on_set(bundle=bundle, texts=8, seeds=2)
    assert found.treatments == TREATMENTS
    assert found.language == "en"
    assert found.texts == 8
    assert found.accuracy.shape == found.nats.shape == found.moved.shape == (4, 2)
    assert np.all((found.accuracy >= 0) & (found.accuracy <= 1))
    assert np.all(found.moved[0] == 0)
    if kind is Gpt:
        assert found.ways_differ is None
        assert np.isnan(found.moved[3]).all()
    else:
        assert found.ways_differ is not None
        assert found.ways_differ < 1e-4
        np.testing.assert_allclose(found.nats[1], found.nats[3], atol=1e-4)


def test_a_classifiers_baseline_is_its_accuracy(english: Tokenizer) -> None:
    bundle = bundle_of(Classifier, english, LABELS)
    _, examples = reviews("en", train=0, held_out=20)
    encodings = english.encode_batch([example.text for example in examples], max_len=40)
    logits = torch.cat([bundle.model(torch.tensor([encoding.ids])) for encoding in encodings]).detach().double()
    labels = torch.tensor([example.label for example in examples])
    found = order_effect_on_set(bundle=bundle, texts=20, seeds=1)
    assert found.accuracy[0, 0] == pytest.approx(float((logits.argmax(-1) == labels).double().mean()))
    assert found.nats[0, 0] == pytest.approx(float(torch.nn.functional.cross_entropy(logits, labels)), abs=1e-5)
    _, written = written_reviews("en", train=0, held_out=20)
    plain = torch.tensor([review.construction == "plain" for review in written])
    right = (logits.argmax(-1) == labels).double()
    assert found.plain is not None
    assert found.turned is not None
    assert found.plain[0, 0] == pytest.approx(float(right[plain].mean()))
    assert found.turned[0, 0] == pytest.approx(float(right[~plain].mean()))


def test_a_gpts_baseline_is_its_loss(english: Tokenizer) -> None:
    bundle = bundle_of(Gpt, english)
    text = "The film was dull but the ending was good."
    ids = torch.tensor([english.encode(text).ids])
    expected = torch.nn.functional.cross_entropy(bundle.model(ids)[0, :-1].detach().double(), ids[0, 1:])
    found = order_effect_here(prompt=Prompt(bundle, text, 40), seeds=1)
    assert found.nats[0, 0] == pytest.approx(float(expected), abs=1e-5)
    assert found.guesses == ids.shape[1] - 1


def test_a_bert_guesses_each_token_in_turn(english: Tokenizer) -> None:
    bundle = bundle_of(Bert, english)
    case = cases_of_text(Prompt(bundle, "The film was dull", 40))
    asked = case.targets >= 0
    assert torch.equal(asked.sum(-1), torch.ones(len(case.targets), dtype=torch.long))
    assert bool((case.token_ids[asked] == english.mask_id).all())
    usual = torch.tensor(english.encode("The film was dull").ids).expand_as(asked)
    assert torch.equal(case.token_ids[~asked], usual[~asked])
    assert torch.equal(case.targets[asked], usual[asked])


def test_one_text_has_its_verdict_as_the_right_answer(english: Tokenizer) -> None:
    bundle = bundle_of(Classifier, english, ("a", "b", "c"), n_classes=3)
    found = order_effect_here(prompt=Prompt(bundle, "a dull film, not a good one", 40), seeds=3)
    assert found.accuracy[0].tolist() == [1.0] * 3
    assert found.probabilities is not None
    assert found.probabilities.shape == (4, 3, 3)
    np.testing.assert_allclose(found.probabilities.sum(-1), 1.0, atol=1e-6)
    assert found.nats[0, 0] == pytest.approx(-math.log(found.probabilities[0, 0].max()))


def test_a_translators_right_tokens_are_what_it_writes_with_order(english: Tokenizer) -> None:
    bundle = bundle_of(Translation, english, positions="sinusoidal")
    case = cases_of_text(Prompt(bundle, "a dull film", 40))
    ids = torch.tensor([english.encode("a dull film").ids])
    steps = list(greedy(bundle.model, ids, bos_id=english.bos_id, eos_id=english.eos_id, most=64))
    assert case.targets.tolist() == [[step.token_id for step in steps]]
    found = order_effect_here(prompt=Prompt(bundle, "a dull film", 40), seeds=2)
    assert found.accuracy[0].tolist() == [1.0, 1.0]
    nats = [-step.logits.double().log_softmax(-1)[step.token_id].item() for step in steps]
    assert found.nats[0, 0] == pytest.approx(sum(nats) / len(nats), abs=1e-5)


def test_a_tokenizer_is_measured_in_the_language_it_knows() -> None:
    for language in ("en", "zh"):
        texts = [example.text for example in reviews(language, train=60, held_out=0)[0]]
        for kind in ("wordpiece", "bpe", "character"):
            assert best_language(Tokenizer.train(kind, texts, vocab_size=600)) == language


def test_what_cannot_be_measured_is_said(english: Tokenizer) -> None:
    with pytest.raises(ValueError, match=exactly("tiny tells up, down; the reviews at hand are negative, positive")):
        order_effect_on_set(bundle=bundle_of(Classifier, english, ("up", "down")))
    with pytest.raises(ValueError, match=exactly("texts=0 must be at least 1")):
        cases_of_reviews(bundle_of(Gpt, english), 0)
    with pytest.raises(ValueError, match="tiny is a tagger"):
        order_effect_on_set(bundle=bundle_of(TokenClassifier, english))
    with pytest.raises(ValueError, match="has no token of its own to hide"):
        cases_of_text(Prompt(bundle_of(Bert, english), "[PAD]", 40))


TEXT = "the glass bell rings in the hall of glass and the bell falls. " * 12
TINY = replace(LIVE, characters=64, steps=3, ends=(4, 8, 16, 32), windows=5)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train("character", [TEXT], vocab_size=60, min_frequency=1, template="none")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_bin_is_the_mean_loss_of_its_places(scheme: str, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Gpt] = []
    reach = beyond._reach
    monkeypatch.setattr(beyond, "_reach", lambda model, *rest: (seen.append(model), reach(model, *rest))[1])
    found = train_short(tokenizer, TEXT, TEXT[7:], scheme=scheme, width=8, seed=1, course=TINY)
    ids = torch.tensor(tokenizer.encode(TEXT[7:]).ids)
    starts = torch.linspace(0, len(ids) - 32 - 1, TINY.windows).long().tolist()
    losses, short = [], []
    with torch.inference_mode():
        for start in starts:
            window = ids[start : start + 33]
            log_probs = seen[0](window[None, :-1])[0].log_softmax(-1)  # (place, vocab)
            losses.append([-float(log_probs[place, window[place + 1]]) for place in range(32)])
            for place in range(16, 32, beyond.STRIDE):
                last = window[place - 7 : place + 1]
                short.append(-float(seen[0](last[None])[0, -1].log_softmax(-1)[window[place + 1]]))
    mean = np.mean(losses, axis=0)
    expected = [mean[begin:end].mean() for begin, end in ((0, 4), (4, 8), (8, 16), (16, 32))]
    np.testing.assert_allclose(found.nats, expected, rtol=1e-4)
    assert found.within == pytest.approx(mean[:8].mean(), rel=1e-4)
    assert found.forgetful == pytest.approx(np.mean(short), rel=1e-4)


def test_the_same_seed_gives_the_same_curve_and_what_cannot_be_is_said(tokenizer) -> None:
    once, again = (train_short(tokenizer, TEXT, TEXT, scheme="learned", width=8, seed=2, course=TINY) for _ in range(2))
    np.testing.assert_array_equal(once.nats, again.nats)
    with pytest.raises(ValueError, match="scheme='x' is unknown; it must be one of"):
        train_short(tokenizer, TEXT, TEXT, scheme="x", width=8, seed=2, course=TINY)
    with pytest.raises(ValueError, match="asked=10 characters must be more than the 32 of a window"):
        train_short(tokenizer, TEXT, TEXT[:10], scheme="none", width=8, seed=2, course=TINY)


def test_all_schemes_are_trained_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beyond, "LIVE", replace(TINY, ends=(8, 16, 24)))
    found = beyond_live(width=8, language="zh", seed=0)
    assert found.schemes == SCHEMES
    assert found.nats.shape == (5, 3)
    assert found.lost("alibi") == pytest.approx(float(found.nats[3, -1] - found.nats[3, 0]))
    with pytest.raises(ValueError, match="width=7 must be one of"):
        beyond_live(width=7, language="en", seed=0)


def test_what_is_said_of_the_shipped_curves_holds() -> None:
    found = beyond_shipped(width=64)
    at_home = {scheme: float(found.mean(scheme, found.within)) for scheme in SCHEMES}
    far = {scheme: float(found.mean(scheme, found.nats)[-1]) for scheme in SCHEMES}
    assert min(at_home, key=at_home.__getitem__) == "rotary" == max(far, key=far.__getitem__)
    assert min(SCHEMES, key=found.lost) == "alibi"
    assert found.lost("alibi") < 0.1 < found.lost("none") < 0.5 < min(map(found.lost, ("sinusoidal", "learned")))
    for scheme in ("sinusoidal", "learned", "rotary"):
        assert float(found.mean(scheme, found.forgetful)) < far[scheme] - 0.5
    assert len(set(found.seeds.tolist())) >= 2
    assert found.spread == pytest.approx(
        max(np.ptp(found.nats[np.array(found.schemes) == s], 0).max() for s in SCHEMES)
    )
    cases = data_and_length()
    assert (cases.gaps > 0).all()
    worst = int(cases.gaps.argmax())
    assert (cases.widths[worst], cases.stories[worst]) == (cases.widths.max(), cases.stories.max())
    assert (cases.high - cases.low).max() < cases.gaps.min()
    few = cases.stories == cases.stories.min()
    assert (cases.learned[:, few] < cases.nats[:, few] - 0.5).all()


def test_the_shipped_runs_are_whole() -> None:
    found = beyond_measured()
    assert [vars(run) | plan for run, plan in zip(found.runs, command.plans(972), strict=True)] == list(
        map(vars, found.runs)
    )
    assert found.command.startswith("python -m transformer_core.recipes.beyond ")
    assert found.ends == beyond.COURSE.ends
    assert found.steps == beyond.COURSE.steps
    with pytest.raises(ValueError, match="width=3 and stories=972 have no runs"):
        found.chosen(width=3, stories=972)


RUN = json.loads(FILE.read_text(encoding="utf-8"))["runs"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends": [8, 8]}, "must ascend"),
        ({"runs": []}, r"runs=\[\] must be a list of 1 to 400 objects"),
        ({"steps": 0}, "steps=0 must be a whole number from 1"),
        ({"command": 3}, "command=3 must be a text of at most 500 characters"),
        ({"runs": [RUN | {"nats": [1]}]}, r"nats=\[1.0\] must be a list of 10"),
        ({"runs": [RUN | {"scheme": "x"}]}, "scheme='x' must be one of sinusoidal, learned"),
        ({"runs": [{"nats": [1]}]}, "scheme=None must be one of sinusoidal, learned"),
    ],
)
def test_a_broken_file_is_refused_in_words(change: dict, message: str, tmp_path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(json.loads(FILE.read_text(encoding="utf-8")) | change))
    with pytest.raises(ValueError, match=f"x.json: .*{message}"):
        beyond_measured(path)


@pytest.mark.nightly
def test_the_command_writes_what_is_read_and_goes_on_where_it_was(tmp_path, capsys) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in command.FILES:
        with gzip.open(data / name, "wt", encoding="utf-8") as file:
            file.write("\n".join(json.dumps({"text": TEXT}) for _ in range(12)))
    arguments = ["--data", str(data), "--out", str(tmp_path / "found.json"), "--quick"]
    work = ["--work", str(tmp_path / "work.jsonl")]
    assert command.main([*arguments, *work]) == 0
    first = (tmp_path / "found.json").read_text()
    assert len(beyond_measured(tmp_path / "found.json").runs) == len(command.plans(12, (0,)))
    rows = (tmp_path / "work.jsonl").read_text()
    assert command.main([*arguments, *work]) == 0
    assert (tmp_path / "found.json").read_text() == first
    assert (tmp_path / "work.jsonl").read_text() == rows
    assert command.main(["--data", str(tmp_path / "none"), "--out", str(tmp_path / "x.json"), "--quick"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("beyond: ")
