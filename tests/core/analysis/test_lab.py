"""The Lab: built-in pairs, two readings side by side, and painted weights."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from tests.helpers import nightly_but
from tests.helpers.engine import shipped
from tests.helpers.lab_models import MODEL, TEXT, bundle_of, cases_of, found_at
from transformer_core.analysis.lab import cases
from transformer_core.analysis.lab.changes import change_of, code_of, streams
from transformer_core.analysis.lab.intervention import changed_answers
from transformer_core.analysis.lab.minimal_pairs import PAIRS, minimal_pairs, patch_on_pairs
from transformer_core.analysis.lab.patching import patch_map, patched_stacks
from transformer_core.analysis.lab.side_by_side import FEWEST, linear_cka, side_by_side
from transformer_core.analysis.lab.weights import MOST_BLOCKS, WeightEdit, blocks_of, damaged, matrices_of
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
GATE = [("sentiment", "changed"), ("gpt", "read")]


@pytest.mark.parametrize(("name", "role"), nightly_but(product(TEXTS, ("read", "changed")), GATE))
def test_the_shares_are_those_of_the_maps_of_each_pair(name: str, role: str) -> None:
    bundle, (text, other) = shipped(name), TEXTS[name]
    (stack,) = patched_stacks(bundle)
    prompt = Prompt(bundle, text, 64)
    own = patch_map(prompt=prompt, other=other, stack=stack)
    ids = bundle.tokenizer.encode(text).ids
    read = {"gpt": len(ids) - 1, "bert": ids.index(bundle.tokenizer.mask_id or -1) if name == "bert" else 0}
    position = own.pairs[own.changed.index(True)][0] if role == "changed" else read.get(name, 0)
    found = patch_on_pairs(
        prompt=prompt, other=other, stack=stack, place="attention", layer=2, position=int(position), controls=3
    )
    assert found.offset == (None if role == "read" else 0)
    assert found.random.shape == (3, len(found.pairs))
    assert len(found.pairs) + found.left_out == len(minimal_pairs(bundle)) >= 30
    for index in (0, len(found.pairs) // 2, -1):
        first, second = found.pairs[index]
        exact = patch_map(prompt=Prompt(bundle, first, 64), other=second, stack=stack)
        place = len(exact.labels) - 1 if name == "gpt" else 0
        if name == "bert":
            place = exact.labels.index("[MASK]")
        column = exact.changed.index(True) if role == "changed" else place
        assert found.shares[index] == pytest.approx(exact.exact[1, 2, column], abs=1e-4)


def test_the_pairs_say_where_they_come_from_and_differ_in_a_word() -> None:
    assert "Written for Vitrine" in json.loads(PAIRS.read_text(encoding="utf-8"))["source"]
    for name in ("sentiment", "bert", "gpt"):
        for one, other in minimal_pairs(shipped(name)):
            words = [text.split() for text in (one, other)]
            assert np.sum([left != right for left, right in zip(*words, strict=True)]) == 1


def test_a_model_without_pairs_or_a_place_that_is_not_there_is_told() -> None:
    text, asked = "the glass bell rings", {"other": "the glass box rings", "position": 0}
    with pytest.raises(ValueError, match="no pairs are built in"):
        patch_on_pairs(
            prompt=Prompt(bundle_of("lm gru"), text, 20), stack="recurrent", place="residual", layer=0, **asked
        )
    prompt = Prompt(shipped("sentiment"), text, 20)
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


def test_layers_of_two_models_are_compared_each_with_each() -> None:
    first, second = bundle_of("classifier"), bundle_of("classifier post-norm", seed=5)
    asked = {"prompt": Prompt(first, TEXT, 20), "second_text": TEXT, "site": "encoder.layer0.residual"}
    found = side_by_side(second_bundle=second, **asked)
    tables = [
        [found_at(one, site, *cases_of(one).inputs)[0].double().numpy() for site in streams(one)["encoder"]]
        for one in (first, second)
    ]
    expected = [[by_definition(one, other) for other in tables[1]] for one in tables[0]]
    np.testing.assert_allclose(found.cka, expected, atol=1e-5)
    assert found.cka_shuffled.shape == (2, 2)
    alone = side_by_side(second_bundle=first, **asked)
    np.testing.assert_allclose(np.diag(alone.cka), 1.0, atol=1e-9)
    assert (alone.cka_shuffled < 1).all()


def test_models_of_other_depths_are_compared_and_too_few_tokens_are_not() -> None:
    first = bundle_of("classifier")
    deeper = MODELS["classifier"](ModelConfig(vocab_size=24, **(MODEL | {"n_layers": 3}))).eval()
    asked = {"prompt": Prompt(first, TEXT, 20), "second_bundle": replace(first, model=deeper)}
    asked |= {"site": "encoder.layer0.residual"}
    found = side_by_side(second_text=TEXT, **asked)
    assert found.cka.shape == found.cka_shuffled.shape == (2, 3)
    assert found.cosine.shape == (2,)
    apart = side_by_side(second_text="film", **asked)
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


def test_built_in_texts_of_which_no_token_is_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "reviews", lambda *_, **__: ((), (Example(" ", 0),)))
    with pytest.raises(ValueError, match="no token of its own"):
        cases.built_in_cases(bundle_of("bert"))


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
