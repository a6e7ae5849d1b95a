"""Models beside each other: each is measured as alone, and only where their numbers can be compared."""

import math

import numpy as np
import pytest

from tests.core.analysis.before.conftest import SENTENCE
from tests.helpers.engine import exactly, made
from transformer_core.analysis.before.beside import foreseen, timed_translation
from transformer_core.bundle import Bundle
from transformer_core.evaluation.gpt import measure_text
from transformer_core.generation import translate
from transformer_core.measured import Measured, Usual
from transformer_core.models import Gpt


def test_every_language_model_is_measured_as_alone(lm_of) -> None:
    gru, plain = lm_of("gru"), lm_of("plain", unit="tanh")
    gpt = Bundle("gpt", made(Gpt, vocab_size=gru.tokenizer.vocab_size, max_len=24), gru.tokenizer)
    found = foreseen(text=SENTENCE, n_tokens=24, first=gru, second=plain, third=gpt)
    assert found.models == ("gru", "plain", "gpt")
    for bundle, nats, share in zip((gru, plain, gpt), found.nats, found.share, strict=True):
        measured = measure_text(bundle, SENTENCE)
        assert nats == pytest.approx(measured["loss_nats"], abs=1e-4)
        assert share == pytest.approx(measured["accuracy"], abs=1e-4)
    assert np.isnan(found.usual).all()
    assert found.parameters.tolist() == [bundle.n_parameters for bundle in (gru, plain, gpt)]


def test_what_was_measured_beside_a_model_comes_from_its_bundle(lm_of) -> None:
    bundle = lm_of()
    usual = Usual("Tales", "line", "nats_a_token", 30, 1.5, 2.5)
    known = Bundle("known", bundle.model, bundle.tokenizer, measured=Measured(usual=(usual,)))
    found = foreseen(text=SENTENCE, n_tokens=24, first=known, second=bundle)
    assert (found.usual[0], found.high[0], found.data) == (1.5, 2.5, ("Tales", ""))
    assert math.isnan(found.usual[1])


def test_one_character_has_nothing_before_it(lm_of) -> None:
    found = foreseen(text="a", n_tokens=24, first=lm_of())
    assert found.n_tokens == 1
    assert np.isnan(found.nats).all()


def test_other_tokenizers_and_kinds_are_refused(lm_of, transformer) -> None:
    bundle = lm_of()
    message = "bundle='new' has another tokenizer than 'lm'; they must share one"
    with pytest.raises(ValueError, match=exactly(message)):
        foreseen(text="a", n_tokens=24, first=bundle, second=transformer)
    with pytest.raises(ValueError, match=exactly("bundle='new' is a translation; it must be a gpt or an lm")):
        foreseen(text="a", n_tokens=24, first=transformer)
    with pytest.raises(ValueError, match="at least one"):
        foreseen(text="a", n_tokens=24)


def test_a_timed_translation_is_the_greedy_one(bundle_of, transformer) -> None:
    for bundle in (bundle_of(), bundle_of(attention=None), transformer):
        found = timed_translation(bundle=bundle, text=SENTENCE)
        assert found.text == translate(bundle, [SENTENCE], width=1)[0]
        assert found.seconds > 0
        assert found.source_tokens == 8
