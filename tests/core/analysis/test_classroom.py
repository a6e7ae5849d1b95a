"""What a class measures: its numbers against plain torch, against sums by hand, and against published ones."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers import nightly_but
from tests.helpers.engine import shipped
from transformer_core.analysis.classroom.agreement import ceiling, cohen_kappa, fleiss_kappa, judged, mean_cohen
from transformer_core.analysis.classroom.cuts import BITS, cuts, step_of
from transformer_core.analysis.classroom.draws import distance, forecast
from transformer_core.analysis.classroom.forecasts import bits_of_class, words_ahead
from transformer_core.analysis.classroom.places import places
from transformer_core.analysis.classroom.small_runs import settings_of, small_run
from transformer_core.prompt import Prompt

STORY = "Once upon a time, there was a little"
AHEAD = "One day a boy named Tom went to the park. He saw a big dog."
# Ten things, 14 raters, 5 labels, after Fleiss 1971: kappa 0.210
FLEISS = "0 0 0 0 14  0 2 6 4 2  0 0 3 5 6  0 3 9 2 0  2 2 8 1 1  7 7 0 0 0  3 2 6 3 0  2 5 3 2 2  6 5 2 1 0  0 2 2 3 7"


@torch.inference_mode()
def logits_after(name: str, text: str) -> torch.Tensor:
    bundle = shipped(name)
    return bundle.model(torch.tensor([bundle.tokenizer.encode(text).ids]))[0].double()


@pytest.mark.parametrize("temperature", [0.1, 1.0, 3.0])
def test_a_draw_is_the_token_on_whose_piece_the_number_falls(temperature: float) -> None:
    found = forecast(prompt=Prompt(shipped("gpt"), STORY, 128))
    exact = F.softmax(logits_after("gpt", STORY)[-1] / temperature, -1)
    shares = found.shares(temperature)
    np.testing.assert_allclose(shares, exact[torch.tensor(found.ids)].numpy(), atol=1e-6)
    assert (np.diff(shares) <= 0).all()
    numbers = np.random.default_rng(0).random(2_000)
    ends = np.cumsum(shares)
    drawn = found.drawn(numbers, temperature)
    assert all(
        (place == 0 or ends[place - 1] <= u) and u < ends[place] for u, place in zip(numbers, drawn, strict=True)
    )
    assert found.labels(np.array([0])) == (shipped("gpt").tokenizer.labels_of([int(exact.argmax())])[-1],)


def test_the_distance_of_a_fair_class_is_that_of_chance_and_of_an_unfair_one_is_not() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    fair = np.random.default_rng(5).multinomial(400, shares)
    apart, mean, most = distance(shares, fair)
    assert apart == pytest.approx(np.abs(fair / 400 - shares).sum() / 2)
    spread = np.sqrt(2 * shares * (1 - shares) / (np.pi * 400)).sum() / 2  # of normal numbers
    assert mean == pytest.approx(spread, rel=0.1)
    assert mean < most
    assert distance(shares, np.array([100, 200, 100]))[0] > most
    with pytest.raises(ValueError, match="no draws"):
        distance(shares, np.zeros(3, np.int64))


def test_a_word_ahead_is_scored_by_its_first_token_given_all_before_it() -> None:
    bundle = shipped("gpt")
    found = words_ahead(prompt=Prompt(bundle, AHEAD, 128), start=AHEAD.index("He"), words=5)
    assert found.words == ("He", "saw", "a", "big", "dog.")
    ids = bundle.tokenizer.encode(AHEAD).ids
    exact = -F.log_softmax(logits_after("gpt", AHEAD), -1) / np.log(2)
    places = [ids.index(int(id_), 11) for id_ in found.ids]
    np.testing.assert_allclose(found.bits(), [exact[place - 1, ids[place]].item() for place in places], atol=1e-4)
    assert [found.token_of(place, word) for place, word in enumerate(found.words)] == found.ids.tolist()
    assert found.token_of(1, " saw ") == found.ids[1] != found.token_of(1, "Saw")
    for wrong in ("", "  "):
        with pytest.raises(ValueError, match="must be a word"):
            found.token_of(0, wrong)


def test_writing_without_blanks_is_cut_into_its_characters() -> None:
    text = "小院秋风起，黄花满地香。孤灯照夜雨，远客"
    found = words_ahead(prompt=Prompt(shipped("gpt-poem"), text, 64), start=text.index("孤"), words=7)
    assert found.words == tuple("孤灯照夜雨远客")


@pytest.mark.parametrize(
    ("start", "words", "why"), [(0, 3, "must have a beginning"), (45, 9, "and has"), (5, 0, "from 1")]
)
def test_words_that_are_not_there_are_told(start: int, words: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        words_ahead(prompt=Prompt(shipped("gpt"), AHEAD, 128), start=start, words=words)


def test_a_class_as_one_forecaster_is_the_mean_of_its_distributions() -> None:
    tokens, sure, vocab = np.array([3, 3, 5]), np.array([0.9, 0.5, 0.7]), 11
    people = np.full((3, vocab), 0.0)
    for row, (token, share) in enumerate(zip(tokens, sure, strict=True)):
        people[row] = (1 - share) / (vocab - 1)
        people[row, token] = share
    np.testing.assert_allclose(people.sum(1), 1)
    together, alone = bits_of_class(tokens, sure, 3, vocab)
    assert together == pytest.approx(-np.log2(people.mean(0)[3]))
    assert alone == pytest.approx(-np.log2(people[:, 3]).mean())
    assert together < alone


def test_kappas_are_those_of_the_papers() -> None:
    counts = np.array(FLEISS.split(), dtype=np.int64).reshape(10, 5)
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=5e-4)
    one, other = np.repeat([0, 0, 1, 1], [20, 5, 10, 15]), np.repeat([0, 1, 0, 1], [20, 5, 10, 15])
    assert cohen_kappa(one, other) == pytest.approx(0.4)  # 70 % agree, 50 % by chance
    both = np.stack([one, other])
    assert fleiss_kappa(np.stack([(both == label).sum(0) for label in (0, 1)], 1)) == pytest.approx(0.3939, abs=1e-4)
    assert mean_cohen(np.stack([one, other, other])) == pytest.approx((0.4 + 0.4 + 1) / 3)
    assert np.isnan(fleiss_kappa(np.array([[1, 0], [0, 1]])))
    assert ceiling(np.array([[3, 1], [2, 2]])) == 5 / 8
    assert cohen_kappa(np.array([0, -1, 1]), np.array([0, 1, 1])) == 1.0


def test_a_classifier_labels_each_sentence_as_it_reads_it_alone() -> None:
    texts = ("The film was not bad.", "Two hours of rain.")
    found = judged(bundle=shipped("sentiment"), texts=texts)
    for row, text in zip(found.probabilities, texts, strict=True):
        np.testing.assert_allclose(row, F.softmax(logits_after("sentiment", text), -1).numpy(), atol=1e-5)
    with pytest.raises(ValueError, match="must be a classifier"):
        judged(bundle=shipped("gpt"), texts=texts)


@torch.inference_mode()
def test_a_head_is_cut_as_if_its_columns_of_the_output_matrix_were_zero() -> None:
    bundle, text = shipped("sentiment"), "The film was not good."
    found = cuts(prompt=Prompt(bundle, text, 64), of="head")
    assert found.names[9] == "1 1"
    ids = torch.tensor([bundle.tokenizer.encode(text).ids])
    weight = dict(bundle.model.named_parameters())["encoder.stack.layers.1.self_attention.output_proj.weight"]
    width = weight.shape[1] // bundle.config.n_heads
    changed = weight.clone()
    changed[:, width : 2 * width] = 0
    name = "encoder.stack.layers.1.self_attention.output_proj.weight"
    exact = torch.func.functional_call(bundle.model, {name: changed}, (ids,))[0].softmax(-1).max().item()
    assert found.after[9] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("name", ["sentiment", "gpt"])
def test_words_layers_and_bits_are_cut_one_at_a_time(name: str) -> None:
    text = "Lily had a dog. The dog's name was"
    whole = {of: cuts(prompt=Prompt(shipped(name), text, 64), of=of) for of in ("word", "layer", "bits")}
    assert whole["word"].names[:4] == ("Lily", "had", "a", "dog")
    assert len(whole["layer"].names) == shipped(name).config.n_layers
    assert whole["bits"].names == tuple(map(str, BITS))
    assert abs(whole["bits"].change[-1]) < np.abs(whole["bits"].change).max()
    for found in whole.values():
        assert ((found.after >= 0) & (found.after <= 1)).all()


def test_the_kinds_of_change_have_their_borders() -> None:
    changes = np.array([-0.2, -0.19, -0.05, -0.049, 0.0, 0.049, 0.05, 0.19, 0.2])
    assert step_of(changes).tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 4]


@torch.inference_mode()
def test_a_word_lies_between_the_ends_of_an_axis_as_its_vector_does() -> None:
    bundle = shipped("sentiment")
    found = places(bundle=bundle, words=("dull", "good", "bad"), x=("bad", "good"), y=("quiet", "loud"))
    assert found.at[1:, 0] == pytest.approx([1.0, -1.0])
    table = bundle.model.get_parameter("encoder.embedding.token.weight").double()
    dull, quiet, loud = (
        table[bundle.tokenizer.encode(word, add_special=False).ids[0]] for word in ("dull", "quiet", "loud")
    )
    along = loud - quiet
    exact = 2 * (dull - (quiet + loud) / 2) @ along / (along @ along)
    assert found.at[0, 1] == pytest.approx(exact.item(), abs=1e-6)
    assert found.near.shape == (3, 5, 2)
    with pytest.raises(ValueError, match="must be one token"):
        places(bundle=bundle, words=("unforgettably",), x=("bad", "good"), y=("quiet", "loud"))


@pytest.mark.parametrize("vary", nightly_but(["seed", "rate", "depth"], {"seed"}))
def test_the_same_setting_gives_the_same_run_and_another_one_another(vary: str) -> None:
    first, other = settings_of(vary, 2)  # type: ignore[arg-type]
    runs = [small_run(vary=vary, setting=one, language="en") for one in (first, first, other)]  # type: ignore[arg-type]
    np.testing.assert_array_equal(runs[0].losses, runs[1].losses)
    assert runs[0].losses.tolist() != runs[2].losses.tolist()
    assert runs[0].low < runs[0].accuracy < runs[0].high
    assert runs[0].held_out == 400
    with pytest.raises(ValueError, match="runs=99 must be from 2"):
        settings_of(vary, 99)  # type: ignore[arg-type]
