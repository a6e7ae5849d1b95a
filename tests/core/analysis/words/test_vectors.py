"""Vocabulary, sentence vectors, one-hot rows, neighbours, analogies and maps: identities that hold for any model."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers import ROOT
from tests.helpers.engine import made
from transformer_core.analysis.outcome import read
from transformer_core.analysis.words.nearest_words import Measure, analogy, nearest_words
from transformer_core.analysis.words.one_hot import lookup_times, one_hot_row
from transformer_core.analysis.words.sentence_vectors import Stage, dot_and_cosine, same_word, sentence_vectors
from transformer_core.analysis.words.vocabulary import (
    embedding_matrix,
    find,
    is_fragment,
    listed,
    special_ids,
    template_of,
)
from transformer_core.analysis.words.vocabulary_map import MapMethod, lone_verdicts, vocabulary_map
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.layout.neighbours import trustworthiness
from transformer_core.layout.pca import pca, variance_shares
from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.text import Tokenizer

TEXT = "the story was dull and the ending was a bore"
BUNDLE = load(ROOT / "assets" / "checkpoints" / "sentiment", device="cpu")
TOKENIZER = BUNDLE.tokenizer
MATRIX = embedding_matrix(BUNDLE.model)


def id_of(word: str) -> int:
    """Return the id of a word of the shipped vocabulary."""
    return find(TOKENIZER, word).ids[0]


@pytest.mark.parametrize("kind", [Classifier, Bert, Gpt, Translation])
def test_any_model_has_its_matrix_and_its_rows_are_what_a_sentence_looks_up(kind, word_tokenizer) -> None:
    bundle = Bundle("tiny", made(kind), word_tokenizer)
    found = sentence_vectors(bundle=bundle, text="a glass box", n_tokens=8)
    matrix = embedding_matrix(bundle.model)
    np.testing.assert_array_equal(found.vectors, matrix[found.token_ids].numpy())
    product = F.one_hot(torch.tensor(found.token_ids), len(matrix)).float() @ matrix
    np.testing.assert_allclose(found.vectors, product.numpy(), atol=0)


def test_a_model_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="model=Linear must be"):
        embedding_matrix(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("stage", ["looked_up", "with_positions", "after_layers"])
def test_cosines_are_torchs_and_the_closest_pair_has_the_greatest(stage: Stage) -> None:
    found = sentence_vectors(bundle=BUNDLE, text=TEXT, n_tokens=32, stage=stage)
    x = torch.tensor(found.vectors)
    expected = F.cosine_similarity(x[:, None], x[None], dim=-1)
    np.testing.assert_allclose(found.cosine, expected.numpy(), atol=2e-6)
    np.testing.assert_allclose(found.norms, torch.linalg.vector_norm(x, dim=1).numpy(), rtol=1e-6)
    words = found.token_ids[1:-1]
    best = max(found.cosine[i + 1, j + 1] for i in range(len(words)) for j in range(i) if words[i] != words[j])
    assert found.closest is not None
    assert found.cosine[found.closest] == best


def test_the_same_word_is_the_same_row_until_positions_are_added() -> None:
    found = same_word(bundle=BUNDLE, text=TEXT, n_tokens=32)
    assert found.label in ("the", "was")
    assert len(found.cosine) == 2 + BUNDLE.config.n_layers
    assert found.cosine[0] == pytest.approx(1.0, abs=1e-6)
    assert found.cosine[1] < 0.999
    last = sentence_vectors(bundle=BUNDLE, text=TEXT, n_tokens=32, stage="after_layers")
    assert last.cosine[found.first, found.second] == pytest.approx(found.cosine[-1], abs=1e-4)


def test_a_text_without_a_word_twice_is_read_twice() -> None:
    found = same_word(bundle=BUNDLE, text="dull", n_tokens=3)
    assert found.text == "dull dull"
    with pytest.raises(ValueError, match="a word that can be read twice"):
        same_word(bundle=BUNDLE, text="😀", n_tokens=3)


@pytest.mark.parametrize("token_id", [0, 3, 389, 9998, 9999])
def test_one_hot_times_matrix_is_the_row_exactly(token_id: int) -> None:
    found = one_hot_row(bundle=BUNDLE, token_id=token_id)
    assert found.greatest_difference == 0.0
    np.testing.assert_array_equal(found.row, MATRIX[token_id].numpy())
    assert found.one_hot.sum() == 1.0
    assert found.ids[found.one_hot[:, 0].argmax()] == token_id
    np.testing.assert_array_equal(found.matrix, MATRIX[found.ids].numpy())
    assert found.multiplications == MATRIX.numel()


def test_an_id_outside_the_vocabulary_is_named() -> None:
    size = BUNDLE.tokenizer.vocab_size
    with pytest.raises(ValueError, match=f"token_id={size} must be from 0 to {size - 1}"):
        one_hot_row(bundle=BUNDLE, token_id=size)


def test_both_ways_are_timed() -> None:
    times = lookup_times(bundle=BUNDLE, text=TEXT, n_tokens=32)
    assert times.tokens == 12
    assert times.ratio == times.product / times.lookup > 1.0


@pytest.mark.parametrize(("word", "known", "count"), [("good", True, 1), ("Good", True, 1), ("##ing", True, 1)])
def test_a_typed_word_is_found(word: str, known: bool, count: int) -> None:
    found = find(TOKENIZER, word)
    assert (found.known, len(found.ids)) == (known, count)


def test_a_word_of_several_tokens_and_an_unknown_one_say_so() -> None:
    assert find(TOKENIZER, "unwatchability").labels == ("unwatch", "·ability")
    assert not find(TOKENIZER, "电影").known
    with pytest.raises(ValueError, match="at least one character"):
        find(TOKENIZER, "  ")


def test_byte_level_words_are_found_with_their_blank() -> None:
    tokenizer = Tokenizer.train("bpe", ["a good film, a good end"] * 9, vocab_size=320)
    found = find(tokenizer, "good")
    assert len(found.ids) == 1
    assert not is_fragment(tokenizer, found.ids[0])
    assert is_fragment(tokenizer, tokenizer.id_of("f") or 0)


def test_the_list_leaves_out_what_it_says() -> None:
    words = listed(TOKENIZER, count=500)
    assert not any(TOKENIZER.label_of(id_).startswith("·") or id_ in special_ids(TOKENIZER) for id_ in words)
    everything = listed(TOKENIZER, count=TOKENIZER.vocab_size, fragments=True, special=True)
    assert everything == tuple(range(TOKENIZER.vocab_size))


@pytest.mark.parametrize("measure", ["cosine", "centred", "euclidean"])
def test_neighbours_are_those_that_torch_finds(measure: Measure) -> None:
    word = id_of("awful")
    found = nearest_words(bundle=BUNDLE, token_id=word, k=12, measure=measure)
    ids = torch.tensor([id_ for id_ in listed(TOKENIZER, count=10_000) if id_ != word])
    rows, own = MATRIX[ids], MATRIX[word]
    if measure == "centred":
        mean = torch.cat([rows, own[None]]).mean(0)
        rows, own = rows - mean, own - mean
    lengths = measure == "euclidean"
    values = torch.cdist(rows, own[None])[:, 0] if lengths else F.cosine_similarity(rows, own[None])
    expected, places = values.topk(12, largest=not lengths)
    np.testing.assert_allclose(found.values, expected.numpy(), atol=1e-5)
    assert set(found.ids.tolist()) == set(ids[places].tolist())
    if not lengths:
        unit = F.normalize(torch.cat([rows, own[None]]))[::7]
        pairs = (unit @ unit.T)[~torch.eye(len(unit), dtype=torch.bool)].mean()
        assert found.average == pytest.approx(float(pairs), abs=0.02)


def test_an_analogy_that_adds_nothing_is_the_word_itself() -> None:
    a, b = id_of("good"), id_of("film")
    found = analogy(bundle=BUNDLE, a=a, b=b, c=b, expected=a)
    assert found.ids[0] == a
    assert found.cosine[0] == pytest.approx(1.0, abs=1e-5)
    assert found.rank_with_given == 1
    assert found.given[0]


def test_the_rank_counts_who_comes_before() -> None:
    a, b, c, expected = map(id_of, ("best", "good", "bad", "worst"))
    found = analogy(bundle=BUNDLE, a=a, b=b, c=c, expected=expected, k=50)
    place = found.ids.tolist().index(expected)
    assert found.rank_with_given == place + 1
    assert found.rank == place + 1 - found.given[:place].sum()


def test_lone_verdicts_are_the_models_own() -> None:
    ids = [id_of("awful"), id_of("superb"), 0]
    assert template_of(TOKENIZER) == ((TOKENIZER.cls_id,), (TOKENIZER.sep_id,))
    values = lone_verdicts(BUNDLE, ids)
    for word, value in zip(("awful", "superb"), values.tolist(), strict=False):
        negative, positive = read(BUNDLE, TOKENIZER.encode(word), sites=("class_logits",)).probabilities
        assert value == pytest.approx(math.log(positive / negative), abs=1e-4)


@pytest.mark.parametrize(("method", "axes"), [("tsne", 2), ("pca", 2), ("space", 3)])
def test_a_map_has_its_axes_its_neighbours_and_its_trust(method: MapMethod, axes: int) -> None:
    found = vocabulary_map(bundle=BUNDLE, count=120, method=method)
    assert found.xy.shape == (120, axes)
    rows = MATRIX[found.ids]
    assert found.trustworthiness == pytest.approx(trustworthiness(rows, torch.tensor(found.xy)), abs=1e-6)
    distances = torch.cdist(rows, rows).fill_diagonal_(math.inf)
    np.testing.assert_array_equal(found.neighbours[:, 0], distances.argmin(1).numpy())
    assert len(found.explained) == (0 if method == "tsne" else axes)
    assert found.verdicts is not None
    assert found.same_side is not None
    signs = found.verdicts > 0
    assert found.same_side == pytest.approx((signs[found.neighbours] == signs[:, None]).mean())


def test_variance_shares_are_those_of_a_singular_value_decomposition() -> None:
    x = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    squares = torch.linalg.svdvals(x - x.mean(0)).square()
    torch.testing.assert_close(variance_shares(x).float(), squares / squares.sum(), atol=1e-5, rtol=1e-4)
    assert torch.equal(pca(x, axes=3)[:, :2], pca(x))


def test_dot_products_choose_long_vectors_where_cosines_do_not() -> None:
    found = dot_and_cosine(bundle=BUNDLE, text=TEXT, n_tokens=64, stage="after_layers")
    lengths = found.norms[:, None] * found.norms
    np.testing.assert_allclose(found.dots / lengths, found.cosines, atol=1e-5)
    for place, (by_dot, by_cosine) in enumerate(zip(found.nearest_dot, found.nearest_cosine, strict=True)):
        others = [other for other in range(len(found.labels)) if other != place]
        assert by_dot == max(others, key=lambda other: found.dots[place, other])
        assert by_cosine == max(others, key=lambda other: found.cosines[place, other])
    assert found.others == (found.nearest_dot != found.nearest_cosine).sum() > 0
    assert found.chosen_dot > found.chosen_cosine
    assert found.norms[found.longest] == found.norms.max()
    assert found.beaten > 0


def test_one_token_has_nothing_to_compare_with() -> None:
    bundle = load(ROOT / "assets" / "checkpoints" / "gpt-char", device="cpu")
    with pytest.raises(ValueError, match=r"must have at least 2 tokens, which can be compared$"):
        dot_and_cosine(bundle=bundle, text="a", n_tokens=8)
