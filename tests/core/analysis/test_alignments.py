"""Recurrent translators and language models beside others: alignments, teacher forcing, what can be compared."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.helpers import refusals
from tests.helpers.engine import SENTENCE, lm_bundle, made, seq2seq_bundle, shipped, translation_bundle
from transformer_core.analysis.before import models_compared
from transformer_core.analysis.before.alignments import both_alignments, compared, one_vector, word_alignment
from transformer_core.analysis.before.forced_and_free import forced_and_free
from transformer_core.analysis.before.models_compared import foreseen, timed_translation
from transformer_core.analysis.translation.teacher_forcing import forced_target
from transformer_core.bundle import Bundle
from transformer_core.evaluation.gpt import measure_text
from transformer_core.generation import greedy, translate
from transformer_core.measured import Measured, TypicalRange
from transformer_core.models import Gpt
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer


def test_rows_are_of_the_words_that_greedy_writes() -> None:
    for bundle, layers in (
        (seq2seq_bundle(), 1),
        (seq2seq_bundle(unit="lstm", attention="dot_product"), 1),
        (translation_bundle(), 2),
    ):
        found = word_alignment(prompt=Prompt(bundle, SENTENCE, 12))
        tokenizer = bundle.tokenizer
        source = torch.tensor([tokenizer.encode(SENTENCE).ids])
        steps = list(greedy(bundle.model, source, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id, most=64))
        assert found.target_ids == tuple(step.token_id for step in steps)
        assert found.translation == tokenizer.decode(found.target_ids)
        assert found.weights.shape == (layers, len(found.target), len(found.source))
        np.testing.assert_allclose(found.weights.sum(-1), 1.0, atol=1e-6)
        likeliest = [float(step.logits.softmax(-1).max()) for step in steps]
        np.testing.assert_allclose(found.probabilities, likeliest, atol=1e-5)


def test_a_given_target_is_read_in_place_of_its_own() -> None:
    found = word_alignment(prompt=Prompt(seq2seq_bundle(), SENTENCE, 12), target="le chat dort")
    assert found.target == ("le", "chat", "dort", "[EOS]")
    assert found.translation == "le chat dort"
    assert word_alignment(prompt=Prompt(seq2seq_bundle(), "a", 12), target="").target == ("[EOS]",)


def test_two_models_look_for_the_same_words() -> None:
    both = both_alignments(prompt=Prompt(seq2seq_bundle(), SENTENCE, 12), other=translation_bundle())
    assert both.bundle.target == both.other.target
    assert both.bundle.translation == both.own
    assert both.difference.shape == (2, len(both.other.target))
    assert ((both.difference >= 0) & (both.difference <= 1)).all()
    peaks = both.other.weights.argmax(-1) == both.bundle.weights.argmax(-1)
    np.testing.assert_allclose(both.agree, peaks.mean(-1))


def test_without_looking_each_word_has_the_mean_as_its_context() -> None:
    bundle = seq2seq_bundle()
    found = one_vector(prompt=Prompt(bundle, SENTENCE, 12), most=6)
    tokenizer, model = bundle.tokenizer, bundle.model
    source = torch.tensor([tokenizer.encode(SENTENCE).ids])
    places = {label: id_ for id_, label in enumerate(tokenizer.labels_of(range(tokenizer.vocab_size)))}
    words = [places[label] for label in found.blind_words]
    read = torch.tensor([[tokenizer.bos_id, *words]])
    edits = {"decoder.context": lambda context: annotations.mean(1, keepdim=True).expand_as(context)}
    annotations = capture(model, source, read, sites=("encoder.annotations",))[1]["encoder.annotations"]
    logits, _ = capture(model, source, read, sites=(), edits=edits)
    assert logits[0].argmax(-1)[: len(words)].tolist() == words
    assert tokenizer.decode(words) == found.blind


def test_numbers_are_counted_and_words_in_common_are_a_share() -> None:
    found = one_vector(prompt=Prompt(seq2seq_bundle(), SENTENCE, 12))
    assert found.n_summary == 20
    assert found.n_annotations == 20 * len(found.source)
    assert 0 <= found.kept <= 1
    assert found.looking_words != found.blind_words or found.kept == 1


def test_rows_are_compared_by_what_would_have_to_move() -> None:
    first, second = torch.eye(3).numpy(), torch.eye(3)[[0, 2, 2]].numpy()
    apart, agree = compared(first, second)
    assert apart.tolist() == [0.0, 1.0, 0.0]
    assert agree == pytest.approx(2 / 3)


def test_every_language_model_is_measured_as_alone() -> None:
    gru, plain = lm_bundle("gru"), lm_bundle("plain", unit="tanh")
    gpt = Bundle("gpt", made(Gpt, vocab_size=gru.tokenizer.vocab_size, max_len=24), gru.tokenizer)
    found = foreseen(text=SENTENCE, n_tokens=24, first=gru, second=plain, third=gpt)
    assert found.models == ("gru", "plain", "gpt")
    for bundle, nats, share in zip((gru, plain, gpt), found.nats, found.share, strict=True):
        measured = measure_text(bundle, SENTENCE)
        assert nats == pytest.approx(measured["loss_nats"], abs=1e-4)
        assert share == pytest.approx(measured["accuracy"], abs=1e-4)
    assert np.isnan(found.usual).all()
    assert found.parameters.tolist() == [bundle.n_parameters for bundle in (gru, plain, gpt)]


def test_what_was_measured_beside_a_model_comes_from_its_bundle() -> None:
    bundle = lm_bundle()
    usual = TypicalRange("Tales", "line", "nats_a_token", (1, 10_000), 30, 1.5, 2.5)
    known = Bundle("known", bundle.model, bundle.tokenizer, measured=Measured(usual=(usual,)))
    found = foreseen(text=SENTENCE, n_tokens=24, first=known, second=bundle)
    assert (found.usual[0], found.high[0], found.data) == (1.5, 2.5, ("Tales", ""))
    assert math.isnan(found.usual[1])


def test_one_character_has_nothing_before_it() -> None:
    found = foreseen(text="a", n_tokens=24, first=lm_bundle())
    assert found.n_tokens == 1
    assert np.isnan(found.nats).all()


def test_a_timed_translation_is_the_greedy_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(7.0, 2.5)
    monkeypatch.setattr(models_compared, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    for bundle in (seq2seq_bundle(), seq2seq_bundle(attention=None), translation_bundle()):
        found = timed_translation(bundle=bundle, text=SENTENCE)
        assert found.text == translate(bundle, [SENTENCE], width=1)[0]
        assert (found.seconds, found.source_tokens) == (2.5, 8)


TEXT = "A man in a red shirt is riding a horse."
RIGHT = "Un homme vêtu d'une chemise rouge fait du cheval."


def test_each_word_is_scored_after_the_right_ones_and_the_rest_is_what_the_model_writes() -> None:
    bundle = shipped("seq2seq-en-fr")
    found = forced_and_free(prompt=Prompt(bundle, TEXT, 64), target=RIGHT)
    alone = word_alignment(prompt=Prompt(bundle, TEXT, 64))
    assert found.free_text == alone.translation
    assert [word for word in found.free if word] == list(alone.target[: len(found.words)])
    tokenizer, ids = bundle.tokenizer, bundle.tokenizer.encode(RIGHT).ids
    source = torch.tensor([tokenizer.encode(TEXT).ids])
    with torch.inference_mode():
        place = bundle.model.start(source)
        for step, (read, word) in enumerate(itertools.pairwise(ids)):
            logits, place = bundle.model.advance(torch.tensor([[read]]), place)
            probabilities = logits[0].double().softmax(-1)
            assert found.probabilities[step] == pytest.approx(float(probabilities[word]), abs=1e-6)
            assert found.favourites[step] == tokenizer.label_of(int(probabilities.argmax()))
    assert found.right == sum(one == other for one, other in zip(found.words, found.favourites, strict=True))
    assert found.right > found.free_right
    assert found.words[: found.leaves] == found.free[: found.leaves]
    assert found.words[found.leaves] != found.free[found.leaves]


def test_its_own_translation_is_found_whole_either_way() -> None:
    bundle = shipped("seq2seq-en-fr")
    own = word_alignment(prompt=Prompt(bundle, TEXT, 64))
    found = forced_and_free(prompt=Prompt(bundle, TEXT, 64), target=own.translation)
    assert found.leaves == -1
    assert found.right == found.free_right == len(found.words) == len(own.target)


def test_a_transformer_is_scored_as_on_its_own_page() -> None:
    bundle = shipped("translation-en-fr")
    found = forced_and_free(prompt=Prompt(bundle, TEXT, 64), target=RIGHT)
    forced = forced_target(prompt=Prompt(bundle, TEXT, 64), target=RIGHT)
    assert found.words == forced.words
    assert found.probabilities == pytest.approx(forced.probabilities, abs=1e-6)
    assert found.favourites == forced.favourites


def renamed(before: str, after: str) -> Bundle:
    """Return the Transformer with another word in its vocabulary."""
    text = translation_bundle().tokenizer.to_json().replace(before, after)
    return Bundle("other", translation_bundle().model, Tokenizer.from_json(text))


OLD, NEW = seq2seq_bundle(), translation_bundle()
BLIND = seq2seq_bundle(attention=None)
REFUSED = [
    (lambda: word_alignment(prompt=Prompt(BLIND, "a", 12)), "has attention=None, so that it looks nowhere"),
    (
        lambda: both_alignments(prompt=Prompt(OLD, "a", 12), other=renamed('"cat"', '"dog"'), target="cat"),
        "bundle='old' and other='other' cut the sentence differently",
    ),
    (
        lambda: word_alignment(prompt=Prompt(renamed("[BOS]", "[START]"), "a cat", 12)),
        "bundle='other' has a tokenizer without [BOS] and [EOS]",
    ),
    (lambda: one_vector(prompt=Prompt(NEW, "a", 12)), "bundle='new' is a translation; it must be a seq2seq"),
    (lambda: one_vector(prompt=Prompt(BLIND, "a", 12)), "has attention=None"),
    (
        lambda: foreseen(text="a", n_tokens=24, first=lm_bundle(), second=NEW),
        "bundle='new' has another tokenizer than 'lm'; they must share one",
    ),
    (lambda: foreseen(text="a", n_tokens=24, first=NEW), "bundle='new' is a translation; it must be a gpt or an lm"),
    (lambda: foreseen(text="a", n_tokens=24), "at least one"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
