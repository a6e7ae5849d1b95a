"""What a model concludes is read at the right place, whatever its kind, and every analysis means the same by it."""

import numpy as np
import pytest
import torch

from transformer_core.analysis.attention.head_ablation import head_effects, without_head
from transformer_core.analysis.attention.heads import head_entropies
from transformer_core.analysis.attention.occlusion import occlusion, substitutes
from transformer_core.analysis.attention.tendencies import tendencies_of
from transformer_core.analysis.feed_forward.neurons import without_neuron
from transformer_core.analysis.masks.masked_head import masked_head, own_mask, padded_encoding
from transformer_core.analysis.outcome import copies_at_once, outcome_label, outcome_of, read, require_outcome
from transformer_core.bundle import MODELS, Bundle
from transformer_core.config import ModelConfig
from transformer_core.text import Tokenizer

TEXTS = ["a glass box rings", "a glass bell rings", "a box of glass"] * 3
TEXT = "a glass box rings"


def bundle_of(kind: str, template: str = "cls") -> Bundle:
    """Return a small untrained model of a kind."""
    torch.manual_seed(3)
    tokenizer = Tokenizer.train("word", TEXTS, vocab_size=16, template=template)
    config = ModelConfig(vocab_size=16, d_model=16, n_heads=2, d_ff=24, n_layers=2, max_len=32)
    model = MODELS[kind](config)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.4)
    return Bundle(kind, model.eval().requires_grad_(False), tokenizer, ("no", "yes") if kind == "classifier" else ())


def asked(kind: str, text: str = TEXT, **arguments: object) -> dict:
    return {"bundle": bundle_of(kind, "none" if kind == "gpt" else "cls"), "text": text, "n_tokens": 12} | arguments


def test_a_gpt_foretells_from_the_last_token_of_the_text_itself() -> None:
    closed, padded = bundle_of("gpt", "cls"), bundle_of("gpt", "none")
    encoding = closed.tokenizer.encode(TEXT)
    found = require_outcome(closed, encoding)
    assert (found.asks, encoding.labels[found.place or 0]) == ("next", "rings")
    with_padding = padded_encoding(padded, TEXT, n_tokens=12, pads=3)
    assert require_outcome(padded, with_padding).place == 3
    alone = read(padded, padded.tokenizer.encode(TEXT)).probabilities
    assert read(padded, with_padding).probabilities == pytest.approx(alone, abs=1e-6)


def test_a_bert_guesses_behind_its_first_mask_or_nothing() -> None:
    bundle = bundle_of("bert")
    assert outcome_of(bundle, bundle.tokenizer.encode(TEXT)) is None
    encoding = bundle.tokenizer.encode("a [MASK] box [MASK]")
    found = require_outcome(bundle, encoding)
    assert (found.asks, found.place) == ("masked", 2)
    logits = bundle.model(torch.tensor([encoding.ids])).mlm_logits[0, 2]
    assert read(bundle, encoding).probabilities == pytest.approx(logits.softmax(-1).tolist(), abs=1e-6)


@pytest.mark.parametrize("kind", ["encoder", "translation"])
def test_who_concludes_nothing_says_so(kind: str) -> None:
    bundle = bundle_of(kind)
    with pytest.raises(ValueError, match="concludes nothing"):
        require_outcome(bundle, bundle.tokenizer.encode(TEXT))


def test_names_are_classes_or_tokens() -> None:
    classifier, gpt = bundle_of("classifier"), bundle_of("gpt", "none")
    encoding = gpt.tokenizer.encode(TEXT)
    assert outcome_label(classifier, require_outcome(classifier, encoding), 1) == "yes"
    assert outcome_label(gpt, require_outcome(gpt, encoding), encoding.ids[1]) == "glass"
    assert gpt.tokenizer.vocab_size < 16
    assert outcome_label(gpt, require_outcome(gpt, encoding), 15) == "#15"


def test_a_large_vocabulary_is_read_in_fewer_copies() -> None:
    assert copies_at_once(bundle_of("gpt", "none"), 12, 32) == 32
    assert copies_at_once(bundle_of("gpt", "none"), 1 << 22, 32) == 1


@pytest.mark.parametrize("kind", ["classifier", "gpt", "bert"])
def test_a_board_of_heads_is_each_head_off_alone(kind: str) -> None:
    arguments = asked(kind, "a [MASK] box rings" if kind == "bert" else TEXT)
    board = head_effects(**arguments)
    for layer in range(2):
        for head in range(2):
            one = without_head(**arguments, layer=layer, head=head)
            assert one.winner == board.winner
            assert one.moved == pytest.approx(board.change[layer, head], abs=1e-6)


def test_cutting_a_token_off_is_hiding_its_column() -> None:
    for kind in ("classifier", "gpt"):
        arguments = asked(kind)
        found = occlusion(**arguments, substitute="cut")
        bundle = arguments["bundle"]
        encoding = bundle.tokenizer.encode(TEXT)
        mask = own_mask(bundle, encoding)
        place = 1
        mask[:, place] = False
        mask[place, place] = True
        output = bundle.model(torch.tensor([encoding.ids]), mask=mask[None, None])
        cut = require_outcome(bundle, encoding).logits(output)[0].softmax(-1)[found.winner]
        assert found.change[place] == pytest.approx(float(cut) - found.before, abs=1e-6)
    assert np.isnan(found.change[-1])  # the place that foretells
    assert substitutes(bundle) == ("cut",)


def test_a_neuron_off_moves_a_gpt_as_the_board_of_all_says() -> None:
    found = without_neuron(**asked("gpt", layer=1, neuron=5))
    assert found.moved == pytest.approx(found.moves[5], abs=1e-4)


def test_a_gpts_own_mask_changes_nothing_and_it_hears_all_before() -> None:
    found = masked_head(**asked("gpt"), pads=0, mask="causal", layer=0, head=0, everywhere=True)
    assert found.after == pytest.approx(found.before, abs=1e-6)
    np.testing.assert_allclose(found.steps.weights, found.weights_before, atol=1e-6)
    assert found.reach.all()
    alone = masked_head(**asked("gpt"), pads=0, mask="window.0", layer=0, head=0, everywhere=True)
    assert alone.reach.tolist() == [False, False, False, True]


def test_a_causal_head_that_looks_at_all_alike_has_no_tendency_but_breadth() -> None:
    encoding = bundle_of("gpt", "none").tokenizer.encode("a glass box a glass bell")
    even = np.tri(6) / np.arange(1, 7)[:, None]
    scores = tendencies_of([even[None, None]], [encoding], 0, causal=True).scores[0, 0]
    known = np.isfinite(scores[:-1])
    np.testing.assert_allclose(scores[:-1][known], 0.0, atol=1e-12)
    assert scores[-1] == pytest.approx(1.0)


def test_a_causal_token_can_spread_only_over_what_it_sees() -> None:
    found = head_entropies(**asked("gpt"))
    np.testing.assert_allclose(found.bounds, np.log(np.arange(1, 5)))
    assert (found.tokens <= found.bounds + 1e-6).all()
    assert (found.shares <= 1 + 1e-6).all()
