"""What a verdict rests on: gradients against differences, ranks, shuffled models, and words hidden in each order."""

import copy

import numpy as np
import pytest
import torch

from tests.helpers import refusals
from tests.helpers.engine import made, small_bundle
from transformer_core.analysis.encoder.faithfulness import (
    POINTS,
    cascade,
    deletion,
    deletion_on_reviews,
    hiding_orders,
    sanity_check,
    stages_of,
)
from transformer_core.analysis.encoder.measures import MEASURES, margin_lost, measures, pairs_of, rank_matrix, values_of
from transformer_core.analysis.encoder.saliency import gradients, margins, saliency
from transformer_core.analysis.outcome import one_text
from transformer_core.bundle import Bundle
from transformer_core.models import Gpt
from transformer_core.prompt import Prompt

TEXT = "a glass box a bell"


def test_gradients_are_the_slopes_of_the_margin() -> None:
    bundle = small_bundle()
    model = bundle.model.double()
    token_ids = one_text(bundle, bundle.tokenizer.encode(TEXT))
    here = model.encoder.embedding.token(token_ids).detach()  # pyright: ignore
    _, slope = gradients(bundle, token_ids, here, 1, 0)
    step = 1e-5
    for place, coordinate in ((1, 0), (3, 7)):
        ends = here.repeat(2, 1, 1)
        ends[0, place, coordinate] -= step
        ends[1, place, coordinate] += step
        low, high = margins(bundle, token_ids, ends, 1, 0).tolist()
        assert float(slope[0, place, coordinate]) == pytest.approx((high - low) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("shape", [{}, {"pooling": "mean"}, {"scale_embeddings": True}], ids=str)
@pytest.mark.parametrize("baseline", ["zero", "mask"])
def test_integrated_gradients_add_up_ever_better(shape: dict, baseline) -> None:
    bundle = small_bundle(**shape)
    gaps = []
    for steps in (2, 32, 256):
        found = saliency(prompt=Prompt(bundle, TEXT, 12), steps=steps, baseline=baseline)
        assert found.summed == pytest.approx(found.integrated.sum(), abs=1e-9)
        assert found.gap == pytest.approx(found.summed - found.margin + found.margin_baseline, abs=1e-9)
        gaps.append(abs(found.gap))
    assert gaps[2] < 2e-3
    assert gaps[2] <= gaps[0] + 1e-6
    special = np.array(bundle.tokenizer.encode(TEXT).special)
    assert not found.integrated[special].any()


def test_the_margin_at_the_sentence_is_the_models() -> None:
    bundle = small_bundle()
    found = saliency(prompt=Prompt(bundle, TEXT, 12), baseline="zero")
    logits = bundle.model(one_text(bundle, bundle.tokenizer.encode(TEXT)))[0].detach()
    assert found.margin == pytest.approx(float(logits[found.winner] - logits[found.rival]), abs=1e-5)
    assert not any(parameter.grad is not None for parameter in bundle.model.parameters())


def test_it_works_after_inference_and_for_shared_models() -> None:
    bundle = small_bundle(positions="rotary")
    with torch.inference_mode():
        bundle.model(one_text(bundle, bundle.tokenizer.encode(TEXT)))
        inside = saliency(prompt=Prompt(bundle, TEXT, 12), baseline="zero")
    outside = saliency(prompt=Prompt(bundle, TEXT, 12), baseline="zero")
    np.testing.assert_allclose(inside.integrated, outside.integrated, atol=1e-6)


def test_the_board_is_symmetric_and_ranks_words_alone() -> None:
    bundle = small_bundle()
    found = measures(prompt=Prompt(bundle, TEXT, 12), baseline="mask")
    assert found.values.shape == (len(MEASURES), len(found.words))
    assert found.count == found.words.sum() == 5
    np.testing.assert_array_equal(found.rho, found.rho.T)
    there = np.isfinite(np.diag(found.rho))
    np.testing.assert_allclose(np.diag(found.rho)[there], 1.0)
    fast = rank_matrix(found.values[:, found.words])
    np.testing.assert_allclose(fast[np.isfinite(fast)], found.rho[np.isfinite(fast)], atol=1e-9)
    for place, row in zip(found.first.tolist(), np.abs(found.values), strict=True):
        assert place == -1 or row[place] == np.nanmax(row[found.words])
    assert pairs_of(found.rho).shape == (15,)


def test_the_margin_lost_is_what_reading_without_the_word_loses() -> None:
    bundle = small_bundle()
    token_ids = one_text(bundle, bundle.tokenizer.encode(TEXT))
    hidden = token_ids.clone()
    hidden[0, 2] = bundle.tokenizer.mask_id
    before, after = (bundle.model(ids)[0].tolist() for ids in (token_ids, hidden))
    wanted = (before[1] - before[0]) - (after[1] - after[0])
    assert margin_lost(Prompt(bundle, TEXT, 12), 1, 0)[2] == pytest.approx(wanted, abs=1e-5)


def test_each_stage_shuffles_one_part_more_and_leaves_the_model_alone() -> None:
    bundle = small_bundle()
    kept = copy.deepcopy(bundle.model.state_dict())
    stages = stages_of(bundle)
    assert stages == ("trained", "class_map", "layer1", "layer0", "embedding")
    seen = []
    for stage, some in zip(stages, cascade(bundle, 0), strict=True):
        changed = {name.split(".layers.")[-1] for name, p in some.model.named_parameters() if not p.equal(kept[name])}
        seen.append(len(changed))
        assert (stage == "trained") == (not changed)
        for name, parameter in some.model.named_parameters():
            assert torch.equal(parameter.flatten().sort()[0], kept[name].flatten().sort()[0])
    assert seen == sorted(seen)
    assert len(set(seen)) == len(seen)
    for name, parameter in bundle.model.named_parameters():
        assert torch.equal(parameter, kept[name])


def test_attention_cannot_notice_a_shuffled_class_map() -> None:
    found = sanity_check(prompt=Prompt(small_bundle(), TEXT, 12), shuffles=2)
    assert found.rho.shape == (2, 5, len(MEASURES))
    assert np.isfinite(found.rho[:, 0]).any()
    np.testing.assert_allclose(found.rho[:, 0][np.isfinite(found.rho[:, 0])], 1.0)
    for name in ("rollout", "last"):
        at_class_map = found.rho[:, 1, MEASURES.index(name)]
        np.testing.assert_allclose(at_class_map, 1.0)
    again = sanity_check(prompt=Prompt(small_bundle(), TEXT, 12), shuffles=2)
    np.testing.assert_array_equal(found.maps, again.maps)


REVIEW = "The plot was thin but I loved every minute"


def test_a_sign_counts_where_a_measure_has_one() -> None:
    values = np.tile(np.array([0.0, -3.0, 2.0, 1.0, np.nan]), (len(MEASURES), 1))
    orders = dict(zip(MEASURES, hiding_orders(values, [1, 2, 3, 4]), strict=True))
    assert orders["occlusion"] == orders["integrated"] == orders["product"] == [2, 3, 1, 4]
    assert orders["gradient"] == orders["rollout"] == orders["last"] == [1, 2, 3, 4]


def test_the_fall_is_that_of_the_words_hidden_one_by_one(sentiment: Bundle) -> None:
    found = deletion(prompt=Prompt(sentiment, REVIEW, 32), steps=4)
    encoding = sentiment.tokenizer.encode(REVIEW)
    own = [place for place, special in enumerate(encoding.special) if not special]
    values, gradients = values_of(Prompt(sentiment, REVIEW, 32), steps=4, baseline="mask")
    order = hiding_orders(values, own)[MEASURES.index("occlusion")]
    ids, left = torch.tensor([encoding.ids]), []
    for place in [None, *order]:
        if place is not None:
            ids[0, place] = sentiment.tokenizer.mask_id
        with torch.no_grad():
            left.append(float(sentiment.model(ids).softmax(-1)[0, gradients.winner]))
    row = MEASURES.index("occlusion")
    assert found.words == len(own)
    assert found.area[row] == pytest.approx(np.trapezoid(left, np.linspace(0, 1, len(left))), abs=1e-5)
    assert found.left[row, 0] == pytest.approx(left[0], abs=1e-5)
    assert found.left[row, -1] == pytest.approx(left[-1], abs=1e-5)
    assert found.left.shape == (len(MEASURES) + 1, POINTS)
    assert found.best == int(found.area[:-1].argmin())


def test_hiding_beats_chance_over_reviews(sentiment: Bundle) -> None:
    found = deletion_on_reviews(bundle=sentiment, count=4)
    assert found.wins.sum() == found.reviews == 4
    assert found.area[found.best] < found.area[-1]


ASKED = {"prompt": Prompt(small_bundle(), TEXT, 12)}
GPT = Bundle("words", made(Gpt), small_bundle().tokenizer)
REFUSED = [
    (lambda: saliency(**ASKED, baseline="zero", steps=0), "steps=0 must be from 1 to 256"),
    (lambda: saliency(**ASKED, baseline="noise"), "baseline='noise'"),
    (lambda: saliency(prompt=Prompt(GPT, TEXT, 12), baseline="zero"), "'words' is a gpt; it must be a classifier"),
    (lambda: sanity_check(**ASKED, shuffles=9), "shuffles=9 must be from 1 to 8"),
    (lambda: deletion_on_reviews(bundle=small_bundle(), count=0), "count=0 must be from 1 to"),
    (lambda: deletion(prompt=Prompt(small_bundle(), "glass", 12)), "has 1 words to hide; at least 2 are needed"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
