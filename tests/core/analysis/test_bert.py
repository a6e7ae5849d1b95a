"""What the library says of a BERT: the same numbers as its forward pass, rows that sum to one, identities that hold."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers.engine import lively, made
from transformer_core.analysis.bert.layers import by_layer, each_by_layer
from transformer_core.analysis.bert.masked_words import each_hidden, fill_in, hidden_text, hide, own_places
from transformer_core.analysis.bert.masking_recipe import masking_recipe, three_ways
from transformer_core.analysis.bert.sentence_pairs import (
    CHANGES,
    ORDERS,
    pair_verdict,
    segment_rows,
    without_segments,
    words_of_pair,
)
from transformer_core.analysis.bert.tied_output import one_score
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.models import Bert, Gpt
from transformer_core.text import MASK_ID, Tokenizer

TEXTS = ["a man in a red shirt rides a horse", "two dogs run on the beach", "the dogs play near the water"] * 3
TEXT, PAIR = TEXTS[0], TEXTS[1]
N = 24
SHAPES = {
    "pre": {"n_segments": 2},
    "post": {"n_segments": 2, "norm_order": "post", "embedding_norm": True, "positions": "learned"},
    "bare": {"n_segments": 0, "scale_embeddings": True, "tied_output": False},
}


@pytest.fixture(params=list(SHAPES))
def bundle(request: pytest.FixtureRequest) -> Bundle:
    """Return a tiny lively Bert of each shape."""
    tokenizer = Tokenizer.train("wordpiece", TEXTS, vocab_size=90, lowercase=True, min_frequency=1)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 3, "max_len": 32, "dropout": 0.0}
    torch.manual_seed(0)
    model = lively(Bert(ModelConfig(vocab_size=tokenizer.vocab_size, **sizes, **SHAPES[request.param])))
    return Bundle("tiny", model, tokenizer)


def forward(bundle: Bundle, text: str, hidden: tuple[int, ...] = (), pair: str | None = None):
    """Return the model's own output for a text with some tokens hidden."""
    encoding = hide(bundle.tokenizer.encode(text, pair, max_len=N), hidden, bundle.tokenizer)
    segments = torch.tensor([encoding.segment_ids]) if bundle.config.n_segments else None
    with torch.inference_mode():
        return bundle.model(torch.tensor([encoding.ids]), segment_ids=segments)


def test_guesses_are_the_forward_pass_s(bundle: Bundle) -> None:
    found = fill_in(bundle=bundle, text=TEXT, n_tokens=N, hidden=(2, 5), top=4)
    expected = forward(bundle, TEXT, (2, 5)).mlm_logits[0].softmax(-1)
    ids = bundle.tokenizer.encode(TEXT).ids
    assert found.places.tolist() == [2, 5]
    for place, row in zip((2, 5), range(2), strict=True):
        best = expected[place].topk(4)
        np.testing.assert_allclose(found.probabilities[row], best.values, atol=1e-5)
        assert found.ids[row].tolist() == best.indices.tolist()
        assert found.true_ids[row] == ids[place]
        np.testing.assert_allclose(found.true_probabilities[row], expected[place, ids[place]], atol=1e-6)
        assert found.true_ranks[row] == int((expected[place] > expected[place, ids[place]]).sum()) + 1


def test_a_mask_that_is_typed_is_a_mask_of_which_nothing_is_known(bundle: Bundle) -> None:
    typed = fill_in(bundle=bundle, text="a [MASK] in a red shirt rides a horse", n_tokens=N, hidden=())
    chosen = fill_in(bundle=bundle, text=TEXT, n_tokens=N, hidden=(2,))
    np.testing.assert_allclose(typed.probabilities, chosen.probabilities, atol=1e-6)
    assert typed.true_labels == ("",)
    assert typed.true_ranks.tolist() == [0]
    assert np.isnan(typed.true_probabilities).all()


def test_hiding_each_word_by_itself_is_hiding_one(bundle: Bundle) -> None:
    each = each_hidden(bundle=bundle, text=TEXT, n_tokens=N)
    assert tuple(each.places) == own_places(bundle.tokenizer.encode(TEXT))
    for token in (0, 4):
        one = fill_in(bundle=bundle, text=TEXT, n_tokens=N, hidden=(int(each.places[token]),))
        np.testing.assert_allclose(each.probabilities[token], one.true_probabilities[0], atol=1e-5)
        assert (each.ranks[token], each.guesses[token]) == (one.true_ranks[0], one.labels[0][0])
    assert each.share_first == np.mean(each.ranks == 1)


def test_the_last_stage_is_the_model(bundle: Bundle) -> None:
    found = by_layer(bundle=bundle, text=TEXT, n_tokens=N, hidden=(3,), place=3, top=3)
    filled = fill_in(bundle=bundle, text=TEXT, n_tokens=N, hidden=(3,), top=3)
    assert found.probabilities.shape[0] == bundle.config.n_layers + 1
    np.testing.assert_allclose(found.best_probabilities[-1], filled.probabilities[0], atol=1e-5)
    assert found.best_labels[-1] == filled.labels[0]
    assert found.true_word is not None
    assert found.words[found.true_word] == filled.true_labels[0]
    assert (found.ranks[found.settled :, 0] == 1).all()
    assert found.settled == 0 or found.ranks[found.settled - 1, 0] > 1


def test_each_word_by_layer_is_one_word_by_layer(bundle: Bundle) -> None:
    each = each_by_layer(bundle=bundle, text=TEXT, n_tokens=N)
    for token in (1, 6):
        place = int(each.places[token])
        one = by_layer(bundle=bundle, text=TEXT, n_tokens=N, hidden=(place,), place=place)
        np.testing.assert_allclose(each.probabilities[:, token], one.probabilities[:, 0], atol=1e-5)
        assert each.ranks[:, token].tolist() == one.ranks[:, 0].tolist()
        assert [row[token] for row in each.firsts] == [row[0] for row in one.best_labels]
        assert each.settled[token] == one.settled


def test_the_pair_verdict_is_the_forward_pass_s(bundle: Bundle) -> None:
    found = pair_verdict(bundle=bundle, text=TEXT, pair=PAIR, n_tokens=N)
    sentences = {"a": TEXT, "b": PAIR}
    for order, share in zip(ORDERS, found.follows, strict=True):
        expected = forward(bundle, sentences[order[0]], pair=sentences[order[1]]).nsp_logits.softmax(-1)[0, 0]
        np.testing.assert_allclose(share, expected, atol=1e-6)


def test_hiding_a_word_of_a_pair(bundle: Bundle) -> None:
    found = words_of_pair(bundle=bundle, text=TEXT, pair=PAIR, n_tokens=N)
    expected = forward(bundle, TEXT, (int(found.places[-1]),), pair=PAIR).nsp_logits.softmax(-1)[0, 0]
    np.testing.assert_allclose(found.follows[-1], expected, atol=1e-6)
    np.testing.assert_allclose(found.moves, 100 * (found.follows - found.usual))
    assert found.segments[0] == 0
    assert found.segments[-1] == 1


def test_segments_through_the_probe(bundle: Bundle) -> None:
    asked = {"bundle": bundle, "text": TEXT, "pair": PAIR, "n_tokens": N}
    if not bundle.config.n_segments:
        with pytest.raises(ValueError, match="0 segment vectors"):
            without_segments(**asked)
        return
    found, rows = without_segments(**asked), segment_rows(**asked)
    shares = dict(zip(CHANGES, found.follows, strict=True))
    encoding = bundle.tokenizer.encode(TEXT, PAIR)
    ids, own = torch.tensor([encoding.ids]), torch.tensor([encoding.segment_ids])
    for change, segment_ids in {"usual": own, "swapped": 1 - own, "all_a": 0 * own, "all_b": 0 * own + 1}.items():
        with torch.inference_mode():
            logits = bundle.model(ids, segment_ids=segment_ids).nsp_logits
        np.testing.assert_allclose(shares[change], logits.softmax(-1)[0, 0], atol=1e-6)
    matrix = bundle.model.encoder.embedding.segment.weight  # type: ignore[union-attr]
    np.testing.assert_allclose(rows.segment_norms, matrix[own[0]].norm(dim=-1).detach(), rtol=1e-5)
    assert rows.segment_ids.tolist() == list(encoding.segment_ids)


def test_a_score_is_the_sum_of_its_products(bundle: Bundle) -> None:
    found = one_score(bundle=bundle, text=TEXT, n_tokens=N, hidden=(2,), place=2, word_id=20, top=5)
    score = forward(bundle, TEXT, (2,)).mlm_logits[0, 2]
    np.testing.assert_allclose(found.score, score[20], atol=1e-5)
    np.testing.assert_allclose(found.products.sum() + found.bias, found.recomputed)
    assert found.difference <= found.rounding < 1e-3
    assert found.guess_ids.tolist() == score.topk(5).indices.tolist()
    assert found.tied == bundle.config.tied_output
    assert (found.apart == 0) == found.tied
    assert 20 not in found.near_ids
    assert (np.diff(found.near_cosines) <= 0).all()


def test_the_recipe_keeps_its_shares(bundle: Bundle) -> None:
    found = masking_recipe(bundle=bundle, text=TEXT, n_tokens=N, probability=0.15, seed=3, copies=8_000)
    assert found.shares.sum() == pytest.approx(1)
    expected = np.array([0.85, 0.15 * 0.8, 0.15 * 0.1, 0.15 * 0.1])
    np.testing.assert_allclose(found.shares, expected, atol=0.006)
    ids = np.array(bundle.tokenizer.encode(TEXT).ids)
    assert (found.read_ids[found.fates == 0] == ids[found.fates == 0]).all()
    assert (found.read_ids[found.fates == 1] == MASK_ID).all()
    assert (found.chosen == (found.fates > 0)).all()
    again = masking_recipe(bundle=bundle, text=TEXT, n_tokens=N, probability=0.15, seed=3, copies=8_000)
    assert (found.read_ids == again.read_ids).all()


def test_three_ways_of_treating_a_word(bundle: Bundle) -> None:
    found = three_ways(bundle=bundle, text=TEXT, n_tokens=N, seed=1, exchanges=3)
    each = each_hidden(bundle=bundle, text=TEXT, n_tokens=N)
    np.testing.assert_allclose(found.probabilities[0], each.probabilities, atol=1e-5)
    ids = torch.tensor(bundle.tokenizer.encode(TEXT).ids)
    kept = forward(bundle, TEXT).mlm_logits[0].softmax(-1)[torch.arange(len(ids)), ids]
    np.testing.assert_allclose(found.probabilities[2], kept[list(found.places)], atol=1e-5)
    np.testing.assert_allclose(found.means, found.probabilities.mean(1))


def test_special_tokens_may_have_any_ids(bundle: Bundle) -> None:
    encoding = bundle.tokenizer.encode(TEXT)
    shifted = bundle.tokenizer.from_json(bundle.tokenizer.to_json().replace('"[MASK]"', '"<mask>"'))
    masked = hidden_text(replace(bundle, tokenizer=shifted), TEXT.replace("man", "[MASK]"), N, (5,))
    assert masked.places == (2, 5)
    assert masked.true_ids == (None, encoding.ids[5])


def test_what_cannot_be_asked_is_refused(bundle: Bundle) -> None:
    asked = {"bundle": bundle, "text": TEXT, "n_tokens": N}
    with pytest.raises(ValueError, match="at least one token must be hidden"):
        fill_in(**asked, hidden=())
    with pytest.raises(ValueError, match="got 0"):
        fill_in(**asked, hidden=(0,))
    with pytest.raises(ValueError, match="top=0"):
        fill_in(**asked, hidden=(2,), top=0)
    with pytest.raises(ValueError, match=r"place=4 must be one of the masks' places, \(2,\)"):
        by_layer(**asked, hidden=(2,), place=4)
    with pytest.raises(ValueError, match="must be a sentence"):
        pair_verdict(**asked, pair=" ")
    with pytest.raises(ValueError, match="copies=0"):
        masking_recipe(**asked, probability=0.1, seed=0, copies=0)
    with pytest.raises(ValueError, match="is a gpt; it must be a bert"):
        fill_in(**asked | {"bundle": replace(bundle, model=made(Gpt))}, hidden=(2,))


def test_a_bert_without_the_head_for_pairs_says_so(bundle: Bundle) -> None:
    headless = replace(bundle, model=Bert(replace(bundle.config, pair_head=False)).eval())
    with pytest.raises(ValueError, match="without a head for pairs"):
        pair_verdict(bundle=headless, text=TEXT, pair=PAIR, n_tokens=N)
    assert len(fill_in(bundle=headless, text=TEXT, n_tokens=N, hidden=(2,)).places) == 1
