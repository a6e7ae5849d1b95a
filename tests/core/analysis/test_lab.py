"""The Lab: built-in pairs, two readings side by side, and painted weights."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import nightly_but
from tests.helpers.engine import shipped
from tests.helpers.lab_models import MODEL, TEXT, bundle_of, cases_of, found_at
from transformer_core.analysis.encoder.two_sentences import sentence_pair
from transformer_core.analysis.lab import text_sets
from transformer_core.analysis.lab.cases import Answers, Cases, answers_of, one_case
from transformer_core.analysis.lab.changes import HeadOff, change_of, code_of, random_like, streams
from transformer_core.analysis.lab.heads_off import attentions, few_heads
from transformer_core.analysis.lab.intervention import changed_answers, intervene, intervene_on_set
from transformer_core.analysis.lab.minimal_pairs import PAIRS, minimal_pairs, patch_on_pairs
from transformer_core.analysis.lab.patching import patch_map, patched_stacks
from transformer_core.analysis.lab.side_by_side import FEWEST, linear_cka, side_by_side
from transformer_core.analysis.lab.text_sets import MOST_UNKNOWN, answered_by, knows_answers, measured_cases
from transformer_core.analysis.lab.weight_curve import STRENGTHS, TABLE_STRENGTHS, weight_curve, weight_table
from transformer_core.analysis.lab.weights import (
    EVERY,
    MATRIX_KINDS,
    MOST_BLOCKS,
    WeightEdit,
    blocks_of,
    damaged,
    edits_of_matrices,
    matrices_of,
    matrix_kinds,
)
from transformer_core.bundle import MODELS
from transformer_core.config import ModelConfig
from transformer_core.examples import Example
from transformer_core.prompt import Prompt

TEXTS = {
    "sentiment": ("The film was not good.", "The film was not bad."),
    "bert": ("the girl said [MASK] was here", "the boy said [MASK] was here"),
    "gpt": ("Lily was in the shop, and", "Tom was in the shop, and"),
    "sentiment-zh": ("这家饭店很好。", "这家饭店很差。"),
}
GATE = [("gpt", "read")]


@pytest.mark.parametrize(("name", "role"), nightly_but(product(TEXTS, ("read", "changed")), GATE))
def test_the_shares_are_those_of_the_maps_of_each_pair(name: str, role: str) -> None:
    bundle, (text, other) = shipped(name), TEXTS[name]
    (stack,) = patched_stacks(bundle)
    prompt = Prompt(bundle, text, 64)
    there = Prompt(bundle, other, 64)
    own = patch_map(prompt=prompt, other=there, stack=stack)
    ids = bundle.tokenizer.encode(text).ids
    read = {"gpt": len(ids) - 1, "bert": ids.index(bundle.tokenizer.mask_id or -1) if name == "bert" else 0}
    position = own.pairs[own.changed.index(True)][0] if role == "changed" else read.get(name, 0)
    found = patch_on_pairs(
        prompt=prompt, other=there, stack=stack, place="attention", layer=2, position=int(position), controls=3
    )
    assert found.offset == (None if role == "read" else 0)
    assert found.random.shape == (3, len(found.pairs))
    assert len(found.pairs) + found.left_out == len(minimal_pairs(bundle)) >= 30
    for index in (0, len(found.pairs) // 2, -1):
        first, second = found.pairs[index]
        exact = patch_map(prompt=Prompt(bundle, first, 64), other=Prompt(bundle, second, 64), stack=stack)
        place = len(exact.labels) - 1 if name == "gpt" else 0
        if name == "bert":
            place = exact.labels.index("[MASK]")
        column = exact.changed.index(True) if role == "changed" else place
        assert found.shares[index] == pytest.approx(exact.exact[1, 2, column], abs=1e-4)


@settings(max_examples=20)
@given(off=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 7))), count=st.integers(1, 19), seed=st.integers(0, 9))
def test_random_heads_are_other_ones_and_no_draw_is_made_twice(
    off: set[tuple[int, int]], count: int, seed: int
) -> None:
    bundle = shipped("sentiment")
    scopes = attentions(bundle)["encoder"]
    changes = [HeadOff(scopes[layer], head) for layer, head in sorted(off)]
    drawn = random_like(changes, one_case(prompt=Prompt(bundle, "a good film", 20)), count, seed)
    assert len({frozenset(one) for one in drawn}) == len(drawn) == (0 if len(off) in (0, 32) else count)
    for one in drawn:
        assert len(set(one)) == len(off)
        assert len(set(one) & set(changes)) == max(0, 2 * len(off) - 32)


def test_each_test_of_a_head_has_draws_of_its_own_and_all_others_can_be_drawn() -> None:
    bundle = shipped("sentiment")
    cases, scope = one_case(prompt=Prompt(bundle, "a good film", 20)), attentions(bundle)["encoder"][0]
    first, second = (frozenset(random_like([HeadOff(scope, head)], cases, 8)) for head in (0, 1))
    assert first != second
    assert len(random_like([HeadOff(scope, 0)], cases, 32)) == 31


def test_the_pairs_say_where_they_come_from_and_differ_in_a_word() -> None:
    assert "Written for Vitrine" in json.loads(PAIRS.read_text(encoding="utf-8"))["source"]
    for name in ("sentiment", "bert", "gpt"):
        for one, other in minimal_pairs(shipped(name)):
            words = [text.split() for text in (one, other)]
            assert np.sum([left != right for left, right in zip(*words, strict=True)]) == 1


def test_a_model_without_pairs_or_a_place_that_is_not_there_is_told() -> None:
    text = "the glass bell rings"
    prompt = Prompt(bundle_of("lm gru"), text, 20)
    with pytest.raises(ValueError, match="no pairs are built in"):
        patch_on_pairs(prompt=prompt, other=prompt, stack="recurrent", place="residual", layer=0, position=0)
    prompt = Prompt(shipped("sentiment"), text, 20)
    asked = {"other": prompt.with_text("the glass box rings"), "position": 0}
    for wrong, said in (({"place": "cross"}, "place="), ({"layer": 4}, "layer=4"), ({"controls": 99}, "controls=99")):
        with pytest.raises(ValueError, match=said):
            patch_on_pairs(prompt=prompt, **({"stack": "encoder", "place": "residual", "layer": 0} | asked | wrong))


def by_definition(one: np.ndarray, other: np.ndarray) -> float:
    """Kornblith et al. 2019, eq. 4 with linear kernels."""
    one, other = one - one.mean(0), other - other.mean(0)
    crossed = np.linalg.norm(other.T @ one) ** 2
    return float(crossed / (np.linalg.norm(one.T @ one) * np.linalg.norm(other.T @ other)))


def test_cka_is_that_of_its_definition_for_tables_of_other_widths() -> None:
    draw = np.random.default_rng(2)
    ones, others = [draw.normal(size=(9, width)) for width in (4, 30)], [draw.normal(size=(9, 7)) for _ in range(3)]
    found = linear_cka(ones, others)
    expected = [[by_definition(one, other) for other in others] for one in ones]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    turned, _ = np.linalg.qr(draw.normal(size=(30, 30)))
    assert linear_cka([ones[1]], [3 * ones[1] @ turned + 1])[0, 0] == pytest.approx(1.0)
    assert np.isnan(linear_cka([np.ones((9, 4))], others)).all()


WORDS = st.lists(
    st.sampled_from(["the", "film", "was", "not", "very", "good", "at", "all", "and", "I", "hated", "it", "."]),
    min_size=1,
    max_size=40,
)


@settings(max_examples=15)
@given(first=WORDS, second=WORDS)
def test_each_of_two_texts_is_read_whole(first: list[str], second: list[str]) -> None:
    bundle = shipped("sentiment")
    prompts = [Prompt(bundle, text, len(bundle.tokenizer.encode(text))) for text in (" ".join(first), " ".join(second))]
    with torch.inference_mode():
        logits = [bundle.model(torch.tensor([bundle.tokenizer.encode(one.text).ids])) for one in prompts]
    found = [one[0].double().log_softmax(-1) for one in logits]
    winner = int(found[0].argmax())
    expected = [float(one[winner]) for one in found]
    together = side_by_side(prompt=prompts[0], second=prompts[1], site="encoder.layer0.residual")
    assert together.answers == pytest.approx(expected, abs=1e-4)
    assert [len(one) for one in together.rows] == [one.n_tokens for one in prompts]
    pair = sentence_pair(prompt=prompts[0], other=prompts[1])
    np.testing.assert_allclose(pair.probabilities, torch.stack(found).exp(), atol=1e-5)
    if abs(expected[0] - expected[1]) > 1e-2:
        patched = patch_map(prompt=prompts[0], other=prompts[1], stack="encoder")
        assert (patched.first, patched.second) == pytest.approx(expected, abs=1e-4)
        assert patched.unpaired == sum(one.n_tokens for one in prompts) - 2 * len(patched.pairs)


def test_the_second_text_counts_whole_where_it_is_longer_than_the_first() -> None:
    bundle = shipped("gpt")
    texts = ("The cat sat on the mat. The cat was", "The big brown dog sat on the mat. The dog was")
    first, second = (Prompt(bundle, text, len(bundle.tokenizer.encode(text))) for text in texts)
    found = patch_map(prompt=first, other=second, stack="decoder")
    with torch.inference_mode():
        ids = bundle.tokenizer.encode(texts[1]).ids
        own = bundle.model(torch.tensor([bundle.tokenizer.encode(texts[0]).ids]))[0, -1].argmax()
        expected = bundle.model(torch.tensor([ids]))[0, -1].log_softmax(-1)[own]
    assert found.second == pytest.approx(float(expected), abs=1e-4)
    assert found.unpaired == 2


def test_tokens_of_two_vocabularies_are_paired_where_they_are_the_same() -> None:
    found = side_by_side(
        prompt=Prompt(shipped("gpt"), "Once upon a time", 20),
        second=Prompt(shipped("gpt-char"), "Once u", 20),
        site="decoder.layer0.residual",
    )
    assert all("→" not in label for label in found.pair_labels)


def test_layers_of_two_models_are_compared_each_with_each() -> None:
    first, second = bundle_of("classifier"), bundle_of("classifier post-norm", seed=5)
    asked = {"prompt": Prompt(first, TEXT, 20), "site": "encoder.layer0.residual"}
    found = side_by_side(second=Prompt(second, TEXT, 20), **asked)
    tables = [
        [found_at(one, site, *cases_of(one).inputs)[0].double().numpy() for site in streams(one)["encoder"]]
        for one in (first, second)
    ]
    expected = [[by_definition(one, other) for other in tables[1]] for one in tables[0]]
    np.testing.assert_allclose(found.cka, expected, atol=1e-5)
    assert found.cka_shuffled.shape == (2, 2)
    alone = side_by_side(second=asked["prompt"], **asked)
    np.testing.assert_allclose(np.diag(alone.cka), 1.0, atol=1e-9)
    assert (alone.cka_shuffled < 1).all()


def test_models_of_other_depths_are_compared_and_too_few_tokens_are_not() -> None:
    first = bundle_of("classifier")
    deeper = MODELS["classifier"](ModelConfig(vocab_size=24, **(MODEL | {"n_layers": 3}))).eval()
    asked = {"prompt": Prompt(first, TEXT, 20), "site": "encoder.layer0.residual"}
    found = side_by_side(second=Prompt(replace(first, model=deeper), TEXT, 20), **asked)
    assert found.cka.shape == found.cka_shuffled.shape == (2, 3)
    assert found.cosine.shape == (2,)
    apart = side_by_side(second=Prompt(replace(first, model=deeper), "film", 20), **asked)
    assert apart.cka.shape == (0, 0) or len(apart.pairs) >= FEWEST


QUERY = "encoder.stack.layers.0.self_attention.query_proj.weight"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_blocks_cover_just_the_painted_cells_each_once(share: float) -> None:
    cells = np.random.default_rng(4).random((13, 21)) < share
    covered = np.zeros(cells.shape, dtype=int)
    for row, col, height, width in blocks_of(cells):
        covered[row : row + height, col : col + width] += 1
    np.testing.assert_array_equal(covered, cells)


def test_a_full_rectangle_is_one_block() -> None:
    cells = np.zeros((9, 9), dtype=bool)
    cells[2:7, 1:5] = True
    assert blocks_of(cells) == ((2, 1, 5, 4),)


def test_later_strokes_lie_over_earlier_ones_and_the_model_stays() -> None:
    model = bundle_of("classifier").model
    before = dict(model.named_parameters())[QUERY].clone()
    edit = WeightEdit(QUERY, "paint", strokes=((0.0, ((0, 0, 4, 5),)), (1.5, ((3, 4, 2, 1), (0, 9, 1, 2)))))
    after = dict(damaged(model, (edit,)).named_parameters())[QUERY]
    expected = before.clone()
    expected[:4, :5] = 0.0
    expected[3:5, 4] = 1.5
    expected[0, 9:11] = 1.5
    torch.testing.assert_close(after, expected, rtol=0, atol=0)
    torch.testing.assert_close(dict(model.named_parameters())[QUERY], before, rtol=0, atol=0)
    assert change_of(json.loads(json.dumps(code_of(edit)))) == edit


@pytest.mark.parametrize(
    ("strokes", "said"),
    [
        (((0.0, ((0, 0, 99, 1),)),), "must lie within 16 x 16"),
        (((0.0, ((-1, 0, 1, 1),)),), "must lie within 16 x 16"),
        (((0.0, ((3, 0, 0, 1),)),), "must lie within 16 x 16"),
        (((float("nan"), ()),), "must be a number"),
        (((0.0, ((0, 0, 1, 1),) * (MOST_BLOCKS + 1)),), "at most"),
    ],
)
def test_strokes_that_cannot_be_are_told(strokes: tuple, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        damaged(bundle_of("classifier").model, (WeightEdit(QUERY, "paint", strokes=strokes),))


def test_texts_of_which_no_token_is_read_or_few_are_known_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = replace(bundle_of("bert"), read_held_out=None)
    with pytest.raises(ValueError, match="% of the tokens of these texts are unknown to bundle='bert'"):
        measured_cases(stranger)
    monkeypatch.setattr(text_sets, "reviews", lambda *_, **__: ((), (Example(" ", 0),)))
    with pytest.raises(ValueError, match="can read none of the texts"):
        measured_cases(stranger, seed=1)


@pytest.mark.parametrize("name", ["classifier", "gpt", "bert", "translation", "lm gru"])
def test_the_model_of_a_run_is_measured_on_what_its_run_held_out(name: str) -> None:
    bundle = bundle_of(name)
    found = measured_cases(bundle, 3)
    held_out = dict(bundle.read_held_out() if bundle.read_held_out else ())
    assert len(found) == 3
    for row in range(3):
        ids = found.inputs[0][row, : found.lengths[bundle.reader.stack or "encoder"][row]].tolist()
        text = next((text for text in held_out if list(bundle.tokenizer.encode(text).ids) == ids), None)
        assert text is not None or name == "bert"
        if name == "classifier":
            assert found.answers[row].tolist() == [held_out[text]]
        if name == "translation":
            assert bundle.of_target.decode([one for one in found.answers[row].tolist() if one >= 0]) == held_out[text]


@pytest.mark.parametrize(("name", "nothing"), [("sentiment", 21), ("gpt", 54)])
def test_the_correlation_has_the_heads_map_and_leaves_out_what_is_0_by_construction(name: str, nothing: int) -> None:
    """Of a classifier that reads [CLS], 7 places of the last layer's three maps; of a GPT all before the changed word,
    and all but the last place of the last layer."""
    bundle, (text, other) = shipped(name), TEXTS[name]
    if name == "gpt":
        text, other = "Lily had a dog. The dog's name was", "Lily had a cat. The cat's name was"
    (stack,) = patched_stacks(bundle)
    found = patch_map(prompt=Prompt(bundle, text, 64), other=Prompt(bundle, other, 64), stack=stack)
    exact, estimate = (
        np.concatenate([one.ravel(), heads.ravel()])
        for one, heads in ((found.exact, found.heads), (found.estimate, found.heads_estimate))
    )
    counts = estimate != 0
    assert int((~counts).sum()) == nothing
    assert np.abs(exact[~counts]).max() < 1e-5
    assert found.heads.size >= 24
    assert found.agreement.count == exact.size - nothing
    assert found.correlation == pytest.approx(np.corrcoef(exact[counts], estimate[counts])[0, 1])
    assert found.correlation != pytest.approx(np.corrcoef(exact, estimate)[0, 1], abs=1e-5)


GIVEN = (("a glass bell rings", "Positive"), ("the box was not good", "0"), ("a film rings", "NEGATIVE"))


def test_every_measure_of_a_set_reads_a_given_one_with_its_answers() -> None:
    bundle = bundle_of("classifier")
    among = answered_by(bundle, GIVEN)
    assert among == ((GIVEN[0][0], 1), (GIVEN[1][0], 0), (GIVEN[2][0], 0))
    with torch.inference_mode():
        read = [bundle.model(torch.tensor([bundle.tokenizer.encode(text).ids])) for text, _ in among]
    labels = [1, 0, 0]
    right = [int(one.argmax()) == label for one, label in zip(read, labels, strict=True)]
    losses = [float(-one.log_softmax(-1)[0, label]) for one, label in zip(read, labels, strict=True)]
    off = (("head", "encoder.layer0.self_attention", 0, "zero"),)
    found = intervene_on_set(bundle=bundle, changes=off, among=among, controls=1)
    few = few_heads(prompt=Prompt(bundle, TEXT, 20), on="set", among=among)
    curve = weight_curve(prompt=Prompt(bundle, TEXT, 20), parameter=QUERY, operation="scale", among=among)
    assert found.accuracy[0] == few.kept[0, 0] == curve.whole == pytest.approx(np.mean(right))
    assert -found.mean[0] == pytest.approx(np.mean(losses), abs=1e-6)
    assert found.loss.moved == pytest.approx(found.mean[0] - found.mean[1])
    assert found.accuracy[0] != intervene_on_set(bundle=bundle, changes=off, controls=1).accuracy[0]


def test_a_given_set_without_answers_is_measured_against_the_models_own() -> None:
    bundle = bundle_of("classifier")
    among = answered_by(bundle, tuple((text, "") for text, _ in GIVEN))
    assert not knows_answers(bundle, among)
    assert knows_answers(bundle, "held_out")
    assert intervene_on_set(bundle=bundle, changes=(), among=among).accuracy[0] == 1.0
    gpt = bundle_of("gpt")
    assert knows_answers(gpt, answered_by(gpt, GIVEN))  # a label is none of its business: the text has its answers


def test_a_target_that_is_given_is_what_a_translation_is_asked_for() -> None:
    bundle = bundle_of("translation")
    found = measured_cases(bundle, 2, 0, answered_by(bundle, (("the glass bell", "a good film"),)))
    assert bundle.of_target.decode([one for one in found.answers[0].tolist() if one >= 0]) == "a good film"


def test_a_given_set_that_a_model_cannot_read_is_refused_with_the_share() -> None:
    bundle = bundle_of("classifier")
    with pytest.raises(ValueError, match=r"answer='angry' is no class .* must be one of negative, positive"):
        answered_by(bundle, (("a glass box", "angry"),))
    known, border = ["glass"] * 7, ["zyx", "xyz", "yxz"]
    assert sum(bundle.tokenizer.encode(" ".join([*known, *border])).unknown) / 10 == MOST_UNKNOWN
    answered_by(bundle, ((" ".join([*known, *border]), "0"),))
    with pytest.raises(ValueError, match=r"36% of the tokens of these texts are unknown to bundle='classifier'"):
        answered_by(bundle, ((" ".join([*known, *border, "zzz"]), "0"),))
    with pytest.raises(ValueError, match="needs the model of a run"):
        measured_cases(replace(bundle, read_held_out=None), among="held_out")


@pytest.mark.parametrize(
    ("name", "said", "number"), [("gpt", "bell", None), ("classifier", " Positive ", 1), ("classifier", "0", 0)]
)
def test_an_answer_is_named_by_a_class_or_by_a_text_of_one_token(name: str, said: str, number: int | None) -> None:
    bundle = bundle_of(name)
    number = bundle.tokenizer.id_of(said) if number is None else number
    prompt = Prompt(bundle, TEXT, 20)
    assert intervene(prompt=prompt, changes=(), answer=said).answer == number
    assert (
        intervene(prompt=prompt, changes=(), answer=said).before
        == intervene(prompt=prompt, changes=(), answer=number).before
    )


@pytest.mark.parametrize(("name", "said"), [("gpt", "glass bell"), ("gpt", ""), ("gpt", "zzz"), ("classifier", "bell")])
def test_an_answer_that_is_no_class_or_not_one_token_is_told(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"answer='{said}' is"):
        one_case(prompt=Prompt(bundle_of(name), TEXT, 20), answer=said)


def rounded(weight: torch.Tensor, bits: int) -> torch.Tensor:
    step = weight.abs().max() / (2 ** (bits - 1) - 1)
    return torch.round(weight / step) * step


@pytest.mark.parametrize("name", nightly_but(("classifier", "gpt", "lm gru", "translation"), ("classifier", "gpt")))
def test_a_table_of_matrices_is_what_a_loop_over_plainly_rounded_copies_finds(name: str) -> None:
    bundle = bundle_of(name)
    cases, ours = measured_cases(bundle, 4, among="held_out"), one_case(prompt=Prompt(bundle, TEXT, 20))
    found = weight_table(prompt=Prompt(bundle, TEXT, 20), operation="round", among="held_out", texts=4)
    assert found.strengths.tolist() == [7, 6, 5, 4, 3, 2, 1]
    assert found.rows == (*matrix_kinds(bundle.model), *matrices_of(bundle.model))
    assert found.whole_probability == pytest.approx(float(answered(ours, bundle.model).log_prob[0].exp()), abs=1e-6)
    for row, label in enumerate(found.rows):
        for column in (0, 4):  # of 7 and 3 bits
            model = copy.deepcopy(bundle.model)
            for own, weight in model.named_parameters():
                if weight.dim() == 2 and (MATRIX_KINDS[label] in own if label in MATRIX_KINDS else own == label):
                    weight.copy_(rounded(weight, int(found.strengths[column])))
            text = answered(ours, model)
            assert found.probability[row, column] == pytest.approx(float(text.log_prob[0].exp()), abs=1e-5)
            assert found.kept[row, column] == (float(text.right[0]) == 1)
            assert found.accuracy[row, column] == pytest.approx(answered(cases, model).accuracy, abs=1e-6)
    assert found.held.tolist() == [next((n for n, kept in enumerate(row) if not kept), 7) for row in found.kept]


def test_an_answer_that_is_not_the_models_own_turns_where_it_becomes_the_likeliest() -> None:
    prompt = Prompt(bundle_of("classifier"), TEXT, 20)
    asked = {"prompt": prompt, "operation": "round", "among": "held_out", "texts": 4}
    own = intervene(prompt=prompt, changes=()).answer
    tables = [weight_table(**asked, answer=one) for one in (own, 1 - own)]
    assert np.array_equal(tables[0].kept, tables[1].kept)  # of two classes
    assert np.array_equal(tables[1].kept, tables[1].probability < 0.5)


def answered(cases: Cases, model: torch.nn.Module) -> Answers:
    """Answer cases all at once by a model of one's own."""
    with torch.inference_mode():
        return answers_of(cases, model(*cases.inputs))


def test_what_a_smaller_matrix_keeps_of_its_rank_shrinks_in_proportion() -> None:
    model = bundle_of("classifier").model
    edits = {edit.parameter: edit.amount for edit in edits_of_matrices(model, EVERY, "rank", 8)}
    assert edits == {name: max(1, 8 * min(model.get_parameter(name).shape) / 16) for name in matrices_of(model)}
    assert edits_of_matrices(model, "class_proj.weight", "rank", 2)[0].amount == 2
    assert {len(points[-TABLE_STRENGTHS:]) for points in STRENGTHS.values()} == {TABLE_STRENGTHS}
    with pytest.raises(ValueError, match="parameter='x' must be one of the model's"):
        edits_of_matrices(model, "x", "round", 2)
    with pytest.raises(ValueError, match="operation='zero' must be one of round"):
        weight_table(prompt=Prompt(bundle_of("classifier"), TEXT, 20), operation="zero")


def test_eight_threads_that_damage_and_eight_that_read_get_what_they_get_alone() -> None:
    bundle = bundle_of("gpt")
    cases, names = cases_of(bundle), matrices_of(bundle.model)
    before = {name: weight.clone() for name, weight in bundle.model.named_parameters()}
    everybody = [(WeightEdit(names[number], "noise", 1.0, seed=number),) for number in range(8)] + [()] * 8

    def answered(changes: tuple[WeightEdit, ...]) -> float:
        return float(changed_answers(cases, changes).log_prob[0])

    alone = list(map(answered, everybody))
    with ThreadPoolExecutor(16) as pool:
        for _ in range(3):
            assert list(pool.map(answered, everybody)) == alone
    assert len(set(alone)) == 9
    assert all(torch.equal(weight, before[name]) for name, weight in bundle.model.named_parameters())
