"""A translation seen from inside: what was written is what the decoder says, and what is hidden is hidden."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from tests.helpers.engine import SOURCE, letters_bundle
from transformer_core.analysis.translation.beam_tree import beam_tree, best_by_width
from transformer_core.analysis.translation.cross_attention import agreement, cross_head, without_source
from transformer_core.analysis.translation.greedy_steps import Writing, Written, written_greedily
from transformer_core.analysis.translation.teacher_forcing import forced_target
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return letters_bundle()


@pytest.fixture(scope="module")
def written(bundle: Bundle) -> Written:
    return written_greedily(bundle=bundle, text=SOURCE, n_tokens=12)


def test_every_step_writes_its_likeliest_word(bundle: Bundle, written: Written) -> None:
    assert written.likeliest_ids[:, 0].tolist() == list(written.token_ids[1:])
    np.testing.assert_allclose(written.likeliest[:, 0], written.probabilities, rtol=1e-6)
    assert (np.diff(written.likeliest, axis=1) <= 0).all()
    assert written.others[0][0] == written.words[0]
    assert written.prefixes[-1] == written.text
    assert written.read[0] == bundle.tokenizer.label_of(bundle.tokenizer.bos_id or 0)


def test_rows_sum_to_one_and_see_nothing_later(written: Written) -> None:
    for weights in (written.self_weights, written.cross_weights):
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert not np.triu(written.self_weights, 1).any()


def test_one_pass_over_all_words_gives_what_each_step_saw(bundle: Bundle, written: Written) -> None:
    model = bundle.model
    memory, mask = model.encode(torch.tensor([bundle.tokenizer.encode(SOURCE).ids]))  # type: ignore[operator]
    for step, probability in enumerate(written.probabilities):
        read = torch.tensor([written.token_ids[: step + 1]])
        logits = model.decode(read, memory, memory_mask=mask)[0, -1]  # type: ignore[operator]
        assert float(logits.softmax(-1)[written.token_ids[step + 1]]) == pytest.approx(float(probability), abs=1e-5)


@pytest.mark.parametrize("wrong", [(), (5, 6, 7)])
def test_a_writing_can_be_looked_at_before_its_end(bundle: Bundle, written: Written, wrong: tuple[int, ...]) -> None:
    right = written.token_ids[1:]
    writing = Writing(bundle, SOURCE, 12, drafts=[(*right[:2], *wrong, *right[3:])])
    looks = 0
    while not writing.go_on(0):
        part, looks = writing.so_far(), looks + 1
        count = len(part.words)
        assert not part.whole
        assert part.words == written.words[:count]
        assert part.read == written.read[:count]
        np.testing.assert_allclose(part.probabilities, written.probabilities[:count], atol=1e-6)
        np.testing.assert_allclose(part.self_weights, written.self_weights[:, :, :count, :count], atol=1e-6)
        np.testing.assert_allclose(part.cross_weights, written.cross_weights[:, :, :count], atol=1e-6)
    assert looks > 1
    whole = written_greedily(bundle=bundle, text=SOURCE, n_tokens=12, begun=writing)
    assert whole.whole
    assert whole.token_ids == written.token_ids
    assert whole.ended == written.ended
    np.testing.assert_allclose(whole.self_weights, written.self_weights, atol=1e-6)


def test_a_writing_that_failed_begins_again(bundle: Bundle, written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(bundle, SOURCE, 12)
    assert not writing.go_on(0)
    with monkeypatch.context() as patch:
        patch.setattr(type(bundle.model), "read", lambda *_, **__: torch.zeros(1).view(7))
        with pytest.raises(RuntimeError):
            writing.go_on()
    assert writing.go_on()
    assert writing.so_far().token_ids == written.token_ids


def test_threads_go_on_with_one_writing_in_turn(bundle: Bundle, written: Written) -> None:
    writing = Writing(bundle, SOURCE, 12)
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda _: writing.go_on(0), range(4 * (len(written.words) + 2))))
    assert ended[-1]
    assert writing.so_far().token_ids == written.token_ids


def test_one_large_head_is_the_one_of_the_grid(bundle: Bundle, written: Written) -> None:
    head = cross_head(bundle=bundle, text=SOURCE, n_tokens=12, target_ids=written.token_ids[:-1], layer=0, head=1)
    np.testing.assert_allclose(head.weights, written.cross_weights[0, 1], atol=1e-5)
    np.testing.assert_allclose(head.weights @ head.value, head.mixture, atol=1e-4)
    with pytest.raises(ValueError, match="layer=7 must be from 0 to 0"):
        cross_head(bundle=bundle, text=SOURCE, n_tokens=12, target_ids=(5,), layer=7, head=0)


def test_heads_vote_where_they_look_most(written: Written) -> None:
    special = (True, *[False] * (len(written.source) - 2), True)
    found = agreement(written.cross_weights, 1, special)
    assert found.votes.sum() == written.cross_weights.shape[0] * written.cross_weights.shape[1]
    assert not special[found.place]
    assert found.mean[found.place] == found.mean[1:-1].max()
    assert found.special == pytest.approx(float(found.mean[0] + found.mean[-1]), abs=1e-6)
    with pytest.raises(ValueError, match="one must be a word"):
        agreement(written.cross_weights, 0, tuple(True for _ in special))


def test_hiding_a_source_position_is_measured_against_everything_in_sight(bundle: Bundle, written: Written) -> None:
    found = without_source(bundle=bundle, text=SOURCE, n_tokens=12, target_ids=written.token_ids, step=2)
    assert found.probability == pytest.approx(float(written.probabilities[2]), abs=1e-5)
    np.testing.assert_allclose(found.change, found.probabilities - found.probability)
    np.testing.assert_allclose(found.weights, written.cross_weights[:, :, 2].mean((0, 1)), atol=1e-5)
    with pytest.raises(ValueError, match="step=99 must be from 0 to"):
        without_source(bundle=bundle, text=SOURCE, n_tokens=12, target_ids=written.token_ids, step=99)


def test_a_models_own_translation_forced_has_the_probabilities_it_was_written_with(
    bundle: Bundle, written: Written
) -> None:
    found = forced_target(bundle=bundle, text=SOURCE, n_tokens=12, target=written.text)
    assert found.token_ids == written.token_ids
    np.testing.assert_allclose(found.probabilities, written.probabilities, atol=1e-5)
    assert (found.ranks == 1).all()
    assert found.favourites == found.words
    assert found.log_prob == pytest.approx(float(np.log(written.probabilities.astype(float)).sum()), abs=1e-4)
    assert found.per_word == pytest.approx(-found.log_prob / len(found.words))


def test_a_wrong_word_has_a_lower_rank_and_an_empty_target_is_the_end_alone(bundle: Bundle, written: Written) -> None:
    wrong = forced_target(bundle=bundle, text=SOURCE, n_tokens=12, target="a a a a")
    assert wrong.log_prob < float(np.log(written.probabilities.astype(float)).sum())
    empty = forced_target(bundle=bundle, text=SOURCE, n_tokens=12, target="")
    assert len(empty.words) == 1


def test_a_tree_of_width_one_is_greedy(bundle: Bundle, written: Written) -> None:
    tree = beam_tree(bundle=bundle, text=SOURCE, n_tokens=12, width=1, length_penalty=0.0)
    assert tree.ranking.texts[0] == written.text
    assert tree.ranking.log_probs[0] == pytest.approx(math.log(math.prod(map(float, written.probabilities))), abs=1e-4)


@pytest.mark.parametrize("width", [2, 4])
def test_a_tree_adds_up(bundle: Bundle, width: int) -> None:
    tree = beam_tree(bundle=bundle, text=SOURCE, n_tokens=12, width=width, length_penalty=0.8)
    parents = tree.parents
    before = np.where(parents >= 0, tree.log_probs[parents], 0.0)
    np.testing.assert_allclose(tree.steps + before, tree.log_probs, atol=1e-9)
    assert (tree.depths[parents[parents >= 0]] == tree.depths[parents >= 0] - 1).all()
    assert all(tree.fates[parent] == "kept" for parent in parents if parent >= 0)
    for depth in range(1, int(tree.depths.max())):
        at = [fate for fate, own in zip(tree.fates, tree.depths, strict=True) if own == depth]
        assert at.count("kept") <= width
    ranking = tree.ranking
    np.testing.assert_allclose(ranking.log_probs / ranking.penalties, ranking.scores)
    np.testing.assert_allclose(ranking.penalties, ((5 + ranking.lengths) / 6) ** 0.8)
    assert (np.diff(ranking.scores) <= 0).all()
    assert tree.texts[int(np.flatnonzero(tree.on_best)[-1])] == ranking.texts[0]


def test_widths_agree_with_the_tree(bundle: Bundle, written: Written) -> None:
    found = best_by_width(bundle=bundle, text=SOURCE, n_tokens=12, widest=3, length_penalty=0.6)
    assert found.texts[0] == written.text
    tree = beam_tree(bundle=bundle, text=SOURCE, n_tokens=12, width=3, length_penalty=0.6)
    assert found.texts[2] == tree.ranking.texts[0]
    assert found.scores[2] == pytest.approx(float(tree.ranking.scores[0]))
    assert found.changed == (len(set(found.texts)) > 1)


def test_other_models_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="bundle='sentiment' is a classifier; it must be a translation"):
        written_greedily(bundle=load(ROOT / "assets" / "checkpoints" / "sentiment"), text="good", n_tokens=4)
