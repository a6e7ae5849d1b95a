"""A translation from inside, every target weighed, and the toy batch of the listing."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pytest
import torch

from tests.helpers import refusals
from tests.helpers.engine import SOURCE, letters_bundle, shipped
from transformer_core.analysis.translation.beam_tree import beam_tree, best_by_width
from transformer_core.analysis.translation.cross_attention import agreement, cross_head, without_source
from transformer_core.analysis.translation.greedy_steps import Writing, Written, written_greedily
from transformer_core.analysis.translation.letter_search import (
    letter_search,
    letter_survey,
    letters_of,
    trained_letters,
)
from transformer_core.analysis.translation.teacher_forcing import forced_target
from transformer_core.analysis.translation.toy_batch import (
    CHANGES,
    CONFIG,
    LENGTH,
    TARGETS,
    Convention,
    Source,
    convention_changes,
    toy_batch,
    toy_model,
    toy_source,
)
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return letters_bundle()


@pytest.fixture(scope="module")
def written(bundle: Bundle) -> Written:
    return written_greedily(prompt=Prompt(bundle, SOURCE, 12))


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
    writing = Writing(Prompt(bundle, SOURCE, 12), drafts=[(*right[:2], *wrong, *right[3:])])
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
    whole = written_greedily(prompt=Prompt(bundle, SOURCE, 12), begun=writing)
    assert whole.whole
    assert whole.token_ids == written.token_ids
    assert whole.ended == written.ended
    np.testing.assert_allclose(whole.self_weights, written.self_weights, atol=1e-6)


def test_a_writing_that_failed_begins_again(bundle: Bundle, written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(Prompt(bundle, SOURCE, 12))
    assert not writing.go_on(0)
    with monkeypatch.context() as patch:
        patch.setattr(type(bundle.model), "read", lambda *_, **__: torch.zeros(1).view(7))
        with pytest.raises(RuntimeError):
            writing.go_on()
    assert writing.go_on()
    assert writing.so_far().token_ids == written.token_ids


def test_threads_go_on_with_one_writing_in_turn(bundle: Bundle, written: Written) -> None:
    writing = Writing(Prompt(bundle, SOURCE, 12))
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda _: writing.go_on(0), range(4 * (len(written.words) + 2))))
    assert ended[-1]
    assert writing.so_far().token_ids == written.token_ids


def test_one_large_head_is_the_one_of_the_grid(bundle: Bundle, written: Written) -> None:
    head = cross_head(prompt=Prompt(bundle, SOURCE, 12), target_ids=written.token_ids[:-1], layer=0, head=1)
    np.testing.assert_allclose(head.weights, written.cross_weights[0, 1], atol=1e-5)
    np.testing.assert_allclose(head.weights @ head.value, head.mixture, atol=1e-4)


def test_heads_vote_where_they_look_most(written: Written) -> None:
    special = (True, *[False] * (len(written.source) - 2), True)
    found = agreement(written.cross_weights, 1, special)
    assert found.votes.sum() == written.cross_weights.shape[0] * written.cross_weights.shape[1]
    assert not special[found.place]
    assert found.mean[found.place] == found.mean[1:-1].max()
    assert found.special == pytest.approx(float(found.mean[0] + found.mean[-1]), abs=1e-6)


def test_hiding_a_source_position_is_measured_against_everything_in_sight(bundle: Bundle, written: Written) -> None:
    found = without_source(prompt=Prompt(bundle, SOURCE, 12), target_ids=written.token_ids, step=2)
    assert found.probability == pytest.approx(float(written.probabilities[2]), abs=1e-5)
    np.testing.assert_allclose(found.change, found.probabilities - found.probability)
    np.testing.assert_allclose(found.weights, written.cross_weights[:, :, 2].mean((0, 1)), atol=1e-5)


def test_a_models_own_translation_forced_has_the_probabilities_it_was_written_with(
    bundle: Bundle, written: Written
) -> None:
    found = forced_target(prompt=Prompt(bundle, SOURCE, 12), target=written.text)
    assert found.token_ids == written.token_ids
    np.testing.assert_allclose(found.probabilities, written.probabilities, atol=1e-5)
    assert (found.ranks == 1).all()
    assert found.favourites == found.words
    assert found.log_prob == pytest.approx(float(np.log(written.probabilities.astype(float)).sum()), abs=1e-4)
    assert found.per_word == pytest.approx(-found.log_prob / len(found.words))


def test_a_wrong_word_has_a_lower_rank_and_an_empty_target_is_the_end_alone(bundle: Bundle, written: Written) -> None:
    wrong = forced_target(prompt=Prompt(bundle, SOURCE, 12), target="a a a a")
    assert wrong.log_prob < float(np.log(written.probabilities.astype(float)).sum())
    empty = forced_target(prompt=Prompt(bundle, SOURCE, 12), target="")
    assert len(empty.words) == 1


def test_a_tree_of_width_one_is_greedy(bundle: Bundle, written: Written) -> None:
    tree = beam_tree(prompt=Prompt(bundle, SOURCE, 12), width=1, length_penalty=0.0)
    assert tree.ranking.texts[0] == written.text
    assert tree.ranking.log_probs[0] == pytest.approx(math.log(math.prod(map(float, written.probabilities))), abs=1e-4)


@pytest.mark.parametrize("width", [2, 4])
def test_a_tree_adds_up(bundle: Bundle, width: int) -> None:
    tree = beam_tree(prompt=Prompt(bundle, SOURCE, 12), width=width, length_penalty=0.8)
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
    found = best_by_width(prompt=Prompt(bundle, SOURCE, 12), widest=3, length_penalty=0.6)
    assert found.texts[0] == written.text
    tree = beam_tree(prompt=Prompt(bundle, SOURCE, 12), width=3, length_penalty=0.6)
    assert found.texts[2] == tree.ranking.texts[0]
    assert found.scores[2] == pytest.approx(float(tree.ranking.scores[0]))
    assert found.changed == (len(set(found.texts)) > 1)


@pytest.mark.parametrize("rule", ["copy", "reverse"])
def test_no_search_beats_the_best_of_all_targets(rule) -> None:
    found = letter_search(rule=rule, source="abcab", epochs=2, seed=0, length_penalty=0.6)
    assert (found.scores <= found.best_scores[0] + 1e-5).all()  # scored in batches of other sizes
    assert (np.diff(found.best_scores) <= 0).all()
    assert found.n_targets == sum(3**length for length in range(7))
    assert found.answer == ("a b c a b" if rule == "copy" else "b a c b a")
    assert all(text == found.best_texts[0] for text, best in zip(found.texts, found.found, strict=True) if best)


def test_the_same_arguments_train_the_same_translator() -> None:
    first, again = (letter_search(rule="copy", source="ab", epochs=1, seed=3, length_penalty=0.0) for _ in range(2))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert trained_letters("copy", epochs=1, seed=3) is trained_letters("copy", epochs=1, seed=3)


def test_a_survey_counts_what_single_searches_find(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = trained_letters("copy", epochs=2, seed=0)
    few = type(letters)(**{**vars(letters), "sources": letters.sources[:3], "answers": letters.answers[:3]})
    monkeypatch.setattr("transformer_core.analysis.translation.letter_search.trained_letters", lambda *_, **__: few)
    survey = letter_survey(rule="copy", epochs=2, seed=0, length_penalty=0.6)
    assert survey.n_sources == 3
    assert len(survey.missed) == round((1 - survey.found[0]) * 3)
    each = [letter_search(rule="copy", source=source, epochs=2, seed=0, length_penalty=0.6) for source in few.sources]
    np.testing.assert_allclose(survey.found, np.mean([one.found for one in each], axis=0))


def test_the_first_batch_is_the_listings_own() -> None:
    found = toy_batch(source="listing", seed=0, sentence=3, layer=0, head=0)
    assert found.source_ids.tolist() == [[1, 3, 4, 1, 2, 3]] * 4
    assert found.target_ids.tolist() == [[1, 0, 0, 0, 0, 0], [1, 3, 0, 0, 0, 0], [1, 3, 4, 0, 0, 0], [1, 3, 4, 1, 0, 0]]
    assert found.parameters == 3_700_096
    assert (CONFIG.norm_order, CONFIG.activation, CONFIG.tied_output) == ("post", "gelu_tanh", False)
    assert found.logits.shape == (4, 6, 5)
    model = toy_model(0)
    with torch.inference_mode():
        logits = model(torch.tensor(found.source_ids), torch.tensor(found.target_ids))
    np.testing.assert_allclose(found.logits, logits, atol=1e-5)


def test_a_position_knows_nothing_of_later_ones() -> None:
    """Sentences share their source and the beginning of their target, so that they share the logits of it."""
    found = toy_batch(source="listing", seed=2, sentence=0, layer=0, head=0)
    assert found.first_difference < 1e-5
    for place in range(3):
        np.testing.assert_allclose(found.logits[place:, place], found.logits[[3] * (4 - place), place], atol=1e-5)
    assert toy_batch(source="random", seed=2, sentence=0, layer=0, head=0).first_difference > 1e-3


@pytest.mark.parametrize("source", get_args(Source))
@pytest.mark.parametrize("sentence", [0, 3])
def test_nothing_hidden_is_looked_at_and_nothing_is_nan(source: Source, sentence: int) -> None:
    found = toy_batch(source=source, seed=1, sentence=sentence, layer=2, head=5)
    assert found.row_sums < 1e-5
    for one in (found.encoder_self, found.decoder_self, found.cross):
        assert one.on_hidden == 0.0
        np.testing.assert_allclose(one.weights.sum(-1), one.mask.any(-1), atol=1e-5)
    unreal = [name for name, finite in zip(found.names, found.finite, strict=True) if not finite]
    assert all(name.endswith("masked_scores") for name in unreal)
    assert found.target_ids.tolist() == [list(target) for target in TARGETS]
    target = TARGETS[sentence]
    assert found.decoder_self.mask.tolist() == [
        [key <= query and target[key] != 0 for key in range(LENGTH)] for query in range(LENGTH)
    ]


def test_a_source_all_of_padding_gets_no_weight_where_a_fill_would_average_it() -> None:
    found = toy_batch(source="all_padding", seed=0, sentence=3, layer=0, head=0)
    assert found.cross.empty_rows == LENGTH
    assert not found.cross.weights.any()
    np.testing.assert_allclose(found.cross.filled, 1 / LENGTH, atol=1e-6)


def test_a_convention_changes_itself_and_leaves_the_other_weights() -> None:
    listed = toy_model(3).state_dict()
    for convention in get_args(Convention):
        weights = toy_model(3, convention).state_dict()
        differ = {name for name in weights.keys() & listed.keys() if not torch.equal(weights[name], listed[name])}
        assert differ <= {"output.proj.weight"}, convention
        assert bool(differ) == ("tied_output" in CHANGES[convention])


def test_what_conventions_change_is_counted_and_measured() -> None:
    found = convention_changes(source="listing", seed=0)
    by_name = dict(zip(found.conventions, found.parameters, strict=True))
    two_norms, one_matrix = 2 * 2 * CONFIG.d_model, CONFIG.vocab_size * CONFIG.d_model
    assert by_name == {
        "listing": 3_700_096,
        "pre_norm": 3_700_096 + two_norms,
        "exact_gelu": 3_700_096,
        "tied_output": 3_700_096 - one_matrix,
        "ours": 3_700_096 + two_norms - one_matrix,
    }
    moved = dict(zip(found.conventions, found.logits_moved, strict=True))
    assert moved["listing"] == 0.0
    assert 0.0 < moved["exact_gelu"] < 5e-3 < min(moved["pre_norm"], moved["tied_output"])
    listed, ours = (
        toy_batch(source="listing", seed=0, sentence=0, layer=0, head=0, convention=name).logits
        for name in ("listing", "ours")
    )
    assert moved["ours"] == pytest.approx(np.abs(ours - listed).max(), abs=1e-5)
    assert found.likeliest_moved[0] == 0.0
    assert ((found.likeliest_moved >= 0) & (found.likeliest_moved <= 1)).all()


READ = {"prompt": Prompt(letters_bundle(), SOURCE, 12)}
TOY = {"source": "random", "seed": 0, "sentence": 0, "layer": 0, "head": 0}
REFUSED = [
    (
        lambda: written_greedily(prompt=Prompt(shipped("sentiment"), "good", 4)),
        "is a classifier; it must be a tra",
    ),
    (lambda: cross_head(**READ, target_ids=(5,), layer=7, head=0), "layer=7 must be from 0 to 0"),
    (lambda: agreement(np.ones((1, 2, 3, 4)) / 4, 0, (True,) * 4), "one must be a word"),
    (lambda: without_source(**READ, target_ids=(1, 5, 2), step=99), "step=99 must be from 0 to"),
    (lambda: toy_batch(**TOY | {"sentence": 4}), "sentence=4 must be from 0 to 3"),
    (lambda: toy_source("x", 0), "source='x' is unknown"),
    (lambda: toy_model(0, "x"), "convention='x' is unknown"),
    *(
        (lambda source=source: letters_of(source, "copy"), "must be 2 to 5 letters out of a, b, c")
        for source in ("", "a", "abcabc", "abd", "你好", "a" * 500)
    ),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
