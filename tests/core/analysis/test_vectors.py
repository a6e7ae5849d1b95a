"""Vocabulary, vectors of words and sentences, one-hot rows, counting against training."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers import refusals
from tests.helpers.engine import made, shipped, small_tokenizer, work_for_time
from transformer_core.analysis.outcome import read
from transformer_core.analysis.parts import reading_part
from transformer_core.analysis.words import tiny_bert
from transformer_core.analysis.words import tiny_bert as corpora
from transformer_core.analysis.words.nearest_words import Measure, analogy, nearest_words
from transformer_core.analysis.words.one_hot import likeness, lookup_times, one_hot_row, word_relations
from transformer_core.analysis.words.sentence_vectors import Stage, dot_and_cosine, same_word, sentence_vectors
from transformer_core.analysis.words.tiny_bert import one_corpus
from transformer_core.analysis.words.two_embeddings import (
    agreement,
    count_pairs,
    counted_space,
    positive_pmi,
    singular_vectors,
    trained_space,
    truncated,
)
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
from transformer_core.layout.neighbours import trustworthiness
from transformer_core.layout.pca import pca, variance_shares
from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

TEXT = "the story was dull and the ending was a bore"
BUNDLE = shipped("sentiment")
TOKENIZER = BUNDLE.tokenizer
STAGES: tuple[Stage, Stage] = ("after_layers", "handed_on")
MATRIX = embedding_matrix(BUNDLE.model)


def one_and_flops(call: Callable[[], object]) -> float:
    """Return 1 and the floating-point operations of a call, in place of its seconds."""
    with FlopCounterMode(display=False) as counted:
        call()
    return 1 + counted.get_total_flops()


def id_of(word: str) -> int:
    """Return the id of a word of the shipped vocabulary."""
    return find(TOKENIZER, word).ids[0]


@pytest.mark.parametrize("kind", [Classifier, Bert, Gpt, Translation])
def test_any_model_has_its_matrix_and_its_rows_are_what_a_sentence_looks_up(kind) -> None:
    bundle = Bundle("tiny", made(kind), small_tokenizer())
    found = sentence_vectors(prompt=Prompt(bundle, "a glass box", 8))
    matrix = embedding_matrix(bundle.model)
    np.testing.assert_array_equal(found.vectors, matrix[found.token_ids].numpy())
    product = F.one_hot(torch.tensor(found.token_ids), len(matrix)).float() @ matrix
    np.testing.assert_allclose(found.vectors, product.numpy(), atol=0)


@pytest.mark.parametrize("stage", ["looked_up", "with_positions", "after_layers"])
def test_cosines_are_torchs_and_the_closest_pair_has_the_greatest(stage: Stage) -> None:
    found = sentence_vectors(prompt=Prompt(BUNDLE, TEXT, 32), stage=stage)
    x = torch.tensor(found.vectors)
    expected = F.cosine_similarity(x[:, None], x[None], dim=-1)
    np.testing.assert_allclose(found.cosine, expected.numpy(), atol=2e-6)
    np.testing.assert_allclose(found.norms, torch.linalg.vector_norm(x, dim=1).numpy(), rtol=1e-6)
    words = found.token_ids[1:-1]
    best = max(found.cosine[i + 1, j + 1] for i in range(len(words)) for j in range(i) if words[i] != words[j])
    assert found.closest is not None
    assert found.cosine[found.closest] == best


def test_the_same_word_is_the_same_row_until_positions_are_added() -> None:
    found = same_word(prompt=Prompt(BUNDLE, TEXT, 32))
    assert found.label in ("the", "was")
    assert len(found.cosine) == 2 + BUNDLE.config.n_layers
    assert found.cosine[0] == pytest.approx(1.0, abs=1e-6)
    assert found.cosine[1] < 0.999
    last = sentence_vectors(prompt=Prompt(BUNDLE, TEXT, 32), stage="after_layers")
    assert last.cosine[found.first, found.second] == pytest.approx(found.cosine[-1], abs=1e-4)


def test_a_text_without_a_word_twice_is_read_twice() -> None:
    found = same_word(prompt=Prompt(BUNDLE, "dull", 3))
    assert found.text == "dull dull"


@pytest.mark.parametrize("token_id", [0, 389, 9999])
def test_one_hot_times_matrix_is_the_row_exactly(token_id: int) -> None:
    found = one_hot_row(bundle=BUNDLE, token_id=token_id)
    assert found.greatest_difference == 0.0
    np.testing.assert_array_equal(found.row, MATRIX[token_id].numpy())
    assert found.one_hot.sum() == 1.0
    assert found.ids[found.one_hot[:, 0].argmax()] == token_id
    np.testing.assert_array_equal(found.matrix, MATRIX[found.ids].numpy())
    assert found.multiplications == MATRIX.numel()


def test_both_ways_are_timed_and_the_product_is_the_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    work_for_time(monkeypatch, one_and_flops)
    times = lookup_times(prompt=Prompt(BUNDLE, TEXT, 32))
    assert times.tokens == 12
    assert times.lookup == 1
    assert times.ratio == times.product == 1 + 2 * 12 * MATRIX.numel()


def test_a_typed_word_is_found_one_of_several_tokens_and_an_unknown_one_say_so() -> None:
    for word in ("good", "Good", "##ing"):
        assert (find(TOKENIZER, word).known, len(find(TOKENIZER, word).ids)) == (True, 1)
    assert find(TOKENIZER, "unwatchability").labels == ("unwatch", "·ability")
    assert not find(TOKENIZER, "电影").known


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
    found = dot_and_cosine(prompt=Prompt(BUNDLE, TEXT, 64), stage="after_layers")
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


def test_what_a_stack_hands_on_has_passed_its_last_norm() -> None:
    asked = {"prompt": Prompt(BUNDLE, TEXT, 64)}
    before, after = (sentence_vectors(**asked, stage=stage).vectors for stage in STAGES)
    norm = reading_part(BUNDLE.model).stack.final_norm
    assert norm is not None
    np.testing.assert_allclose(norm(torch.tensor(before)).detach().numpy(), after, atol=1e-5)
    assert dot_and_cosine(**asked, stage="handed_on").others < dot_and_cosine(**asked, stage="after_layers").others


REVIEW = "The film was good, but the ending of the film was bad."


def test_one_hot_vectors_are_at_right_angles_and_root_two_apart() -> None:
    found = word_relations(prompt=Prompt(BUNDLE, REVIEW, 20))
    count = len(found.ids)
    assert len(set(found.ids)) == count == len(found.labels)
    np.testing.assert_array_equal(found.one_hot, np.eye(count))
    np.testing.assert_allclose(found.one_hot_cosine, np.eye(count), atol=0)
    np.testing.assert_allclose(found.one_hot_distance, math.sqrt(2) * (1 - np.eye(count)), rtol=1e-7)
    np.testing.assert_allclose(found.bounds[:, :2], [[0, 0], [math.sqrt(2)] * 2], rtol=1e-12)


def test_learned_rows_are_the_models_and_their_cosines_torchs() -> None:
    found = word_relations(prompt=Prompt(BUNDLE, REVIEW, 20))
    rows = torch.from_numpy(found.learned)
    weight = dict(BUNDLE.model.named_parameters())["encoder.embedding.token.weight"].float()
    assert torch.equal(rows, weight[list(found.ids)])
    cosine = F.cosine_similarity(rows[:, None].double(), rows[None].double(), dim=-1)
    np.testing.assert_allclose(found.learned_cosine, cosine, atol=1e-6)
    np.testing.assert_allclose(found.learned_distance, torch.cdist(rows.double(), rows.double()), atol=1e-5)
    apart = cosine[~torch.eye(len(rows), dtype=torch.bool)]
    np.testing.assert_allclose(found.bounds[0, 2:], [apart.min(), apart.max()])


def test_memory_is_that_of_the_matrices() -> None:
    found = word_relations(prompt=Prompt(BUNDLE, REVIEW, 20))
    assert found.one_hot_bytes == torch.eye(found.vocab_size, dtype=torch.float32).nbytes
    assert found.learned_bytes == 4 * found.vocab_size * BUNDLE.config.d_model


def test_one_token_has_nothing_to_compare() -> None:
    found = word_relations(prompt=Prompt(BUNDLE, "[CLS] [CLS]", 1_000))
    assert found.labels == ("[CLS]", "[SEP]")


def test_likeness_is_the_cosine_of_rows_or_none() -> None:
    found = likeness(bundle=BUNDLE, word="good", near="great", far="bad")
    both = word_relations(prompt=Prompt(BUNDLE, "good great", 10))
    place = both.labels.index("good"), both.labels.index("great")
    assert found.near is not None
    assert math.isclose(found.near, both.learned_cosine[place], abs_tol=1e-6)
    assert (found.one_hot_near, found.one_hot_far) == (0.0, 0.0)
    assert likeness(bundle=BUNDLE, word="good", near="unwatchabilityish", far="bad").near is None


@pytest.fixture
def quick_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train for one epoch only."""
    monkeypatch.setattr(tiny_bert, "TRAINING", replace(tiny_bert.TRAINING, epochs=1, batch_size=256))
    monkeypatch.setattr(tiny_bert, "_trained", {})


def test_pairs_are_counted_both_ways_within_the_window_and_within_the_text() -> None:
    rows = [[0, 1, 2, 1], [2, 0]]
    counts = count_pairs(rows, 4, window=2)
    expected = np.zeros((4, 4))
    for row in rows:
        for i, left in enumerate(row):
            for j, right in enumerate(row):
                if 0 < abs(i - j) <= 2:
                    expected[left, right] += 1
    np.testing.assert_array_equal(counts.numpy(), expected)


def test_pmi_is_the_log_of_how_much_more_often_than_chance() -> None:
    counts = torch.tensor([[0.0, 8.0, 1.0], [8.0, 0.0, 1.0], [1.0, 1.0, 0.0]], dtype=torch.float64)
    pmi = positive_pmi(counts)
    assert float(pmi[0, 1]) == pytest.approx(math.log((8 / 20) / (9 / 20 * 9 / 20)))
    assert float(pmi[0, 2]) == pytest.approx(math.log((1 / 20) / (9 / 20 * 2 / 20)))
    assert float(pmi[0, 0]) == 0.0
    assert (pmi >= 0).all()
    assert not positive_pmi(torch.zeros(3, 3, dtype=torch.float64)).any()


def test_the_singular_values_are_those_of_a_decomposition() -> None:
    x = torch.randn(12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    matrix = x + x.T
    vectors, values = singular_vectors(matrix)
    torch.testing.assert_close(values, torch.linalg.svdvals(matrix))
    products = vectors.T @ vectors
    torch.testing.assert_close(products, torch.eye(12, dtype=torch.float64), atol=1e-10, rtol=0)
    short = truncated(vectors, values, 3)
    torch.testing.assert_close(short.square().sum(0), values[:3])


def test_opposites_keep_the_same_company() -> None:
    corpus = one_corpus("en")
    found = counted_space(language="en", window=4, dimension=32, word="dull")
    kinds = [found.kinds[place] for place in found.neighbours]
    assert set(kinds) <= {"praise", "blame"}
    assert kinds.count("praise") >= 1
    assert len(found.labels) == corpus.tokenizer.vocab_size - 7
    assert 0.0 < (found.kept or 0.0) < 1.0
    assert (found.kept or 0.0) < (counted_space(language="en", window=4, dimension=64, word="dull").kept or 0.0)


def test_the_corpus_is_the_reviews_and_always_the_same() -> None:
    corpus = one_corpus("zh")
    assert len(corpus.texts) == len(corpus.rows) == corpora.REVIEWS
    assert max(max(row) for row in corpus.rows) < corpus.tokenizer.vocab_size == len(corpus.kinds)


def test_training_gives_the_same_words_and_size_and_an_agreement_that_can_be_recounted(quick_training) -> None:
    asked = {"language": "en", "dimension": 8, "word": "dull"}
    counted, trained = counted_space(window=4, **asked), trained_space(**asked)
    assert trained.labels == counted.labels
    assert trained.vectors.shape == counted.vectors.shape
    first, last = trained.losses or (0.0, 0.0)
    assert last < first
    found = agreement(window=4, **asked)
    shared = len(set(counted.neighbours.tolist()) & set(trained.neighbours.tolist()))
    assert found.word == pytest.approx(shared / 10)
    assert found.mean == pytest.approx(found.overlap.mean(), abs=1e-6)
    assert found.chance == pytest.approx(10 / (len(counted.labels) - 1))


SIZE = TOKENIZER.vocab_size
COUNTED = {"language": "en", "window": 2, "dimension": 8, "word": "dull"}
REFUSED = [
    (lambda: embedding_matrix(torch.nn.Linear(2, 2)), "model=Linear must be"),
    (lambda: one_hot_row(bundle=BUNDLE, token_id=SIZE), f"token_id={SIZE} must be from 0 to {SIZE - 1}"),
    (lambda: find(TOKENIZER, "  "), "at least one character"),
    (lambda: same_word(prompt=Prompt(BUNDLE, "😀", 3)), "a word that can be read twice"),
    (
        lambda: dot_and_cosine(prompt=Prompt(shipped("gpt-char"), "a", 8)),
        "must have at least 2 tokens, which can",
    ),
    (lambda: truncated(torch.eye(12), torch.ones(12), 13), "dimension=13 must be from 1 to 12"),
    (lambda: count_pairs([], 4, window=1), "rows"),
    (lambda: count_pairs([[0]], 4, window=0), "window=0"),
    (lambda: count_pairs([[7]], 4, window=1), "from 7 to 7"),
    (lambda: counted_space(**COUNTED | {"word": "zebra"}), "word='zebra' must be one of"),
    (lambda: counted_space(**COUNTED | {"window": 99}), "window=99"),
    (lambda: counted_space(**COUNTED | {"word": "[UNK]"}), "UNK"),
    (lambda: trained_space(language="en", dimension=9, word="dull"), "dimension=9 must be one of"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
