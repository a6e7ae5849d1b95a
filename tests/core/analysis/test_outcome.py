"""What a model concludes is read at the right place, and every question comes to what its own analysis says."""

import numpy as np
import pytest
import torch

from tests.helpers import refusals
from tests.helpers.engine import SENTENCE, lm_bundle, shipped
from transformer_core.analysis.attention.heads import head_entropies
from transformer_core.analysis.attention.occlusion import occlusion, substitutes
from transformer_core.analysis.attention.tendencies import tendencies_of
from transformer_core.analysis.before.reach import sentence_reach
from transformer_core.analysis.feed_forward.neurons import without_neuron
from transformer_core.analysis.finding import Finding
from transformer_core.analysis.masks.masked_head import masked_head, padded_encoding
from transformer_core.analysis.outcome import own_mask, read, require_outcome
from transformer_core.analysis.questions import QUESTIONS, reads, taken_by
from transformer_core.analysis.words.vocabulary import embedding_matrix
from transformer_core.bundle import MODELS, Bundle
from transformer_core.config import ModelConfig
from transformer_core.prompt import Prompt
from transformer_core.reader import Outcome
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
    return {"prompt": Prompt(bundle_of(kind, "none" if kind == "gpt" else "cls"), text, 12)} | arguments


def test_a_gpt_foretells_from_the_last_token_of_the_text_itself() -> None:
    closed, padded = bundle_of("gpt", "cls"), bundle_of("gpt", "none")
    encoding = closed.tokenizer.encode(TEXT)
    found = require_outcome(closed, encoding)
    assert (found.asks, encoding.labels[found.place or 0]) == ("next", "rings")
    with_padding = padded_encoding(Prompt(padded, TEXT, 12), pads=3)
    assert require_outcome(padded, with_padding).place == 3
    alone = read(padded, padded.tokenizer.encode(TEXT)).probabilities
    assert read(padded, with_padding).probabilities == pytest.approx(alone, abs=1e-6)


def test_a_bert_guesses_behind_its_first_mask_or_nothing() -> None:
    bundle = bundle_of("bert")
    assert bundle.reader.outcome(bundle.tokenizer.encode(TEXT)) is None
    encoding = bundle.tokenizer.encode("a [MASK] box [MASK]")
    found = require_outcome(bundle, encoding)
    assert (found.asks, found.place) == ("masked", 2)
    logits = bundle.model(torch.tensor([encoding.ids])).mlm_logits[0, 2]
    assert read(bundle, encoding).probabilities == pytest.approx(logits.softmax(-1).tolist(), abs=1e-6)


def test_names_are_classes_or_tokens() -> None:
    classifier, gpt = bundle_of("classifier"), bundle_of("gpt", "none")
    encoding = gpt.tokenizer.encode(TEXT)
    assert classifier.reader.label(1) == "yes"
    assert gpt.reader.label(encoding.ids[1]) == "glass"
    assert gpt.tokenizer.vocab_size < 16
    assert gpt.reader.label(15) == "#15"


def test_a_large_vocabulary_is_read_in_fewer_copies() -> None:
    assert bundle_of("gpt", "none").reader.at_once(12, 32) == 32
    assert bundle_of("gpt", "none").reader.at_once(1 << 22, 32) == 1


def test_cutting_a_token_off_is_hiding_its_column() -> None:
    for kind in ("classifier", "gpt"):
        arguments = asked(kind)
        found = occlusion(**arguments, substitute="cut")
        bundle = arguments["prompt"].bundle
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


REVIEW = "The actors were bad, the story was good."
SWAPPED = "The story was good, the actors were bad."


def probabilities(bundle: Bundle, text: str) -> np.ndarray:
    """Return the classes' probabilities as the model itself gives them."""
    with torch.inference_mode():
        return bundle.model(torch.tensor([bundle.tokenizer.encode(text).ids])).softmax(-1)[0].numpy()


def answered(name: str, bundle: Bundle, text: str = REVIEW, **numbers: int) -> Finding:
    return QUESTIONS[name](prompt=Prompt(bundle, text, 64), **numbers)


def test_a_verdict_is_that_of_the_model(sentiment: Bundle) -> None:
    for text in (REVIEW, SWAPPED):
        own = probabilities(sentiment, text)
        found = answered("verdict", sentiment, text)
        assert found.option == sentiment.labels[int(own.argmax())]
        assert found.value == pytest.approx(float(own.max()), abs=1e-6)


def test_without_positions_the_order_of_words_is_nothing(sentiment: Bundle) -> None:
    left = [
        probabilities(sentiment, text).max() + answered("without_positions", sentiment, text).value
        for text in (REVIEW, SWAPPED)
    ]
    winners = [int(probabilities(sentiment, text).argmax()) for text in (REVIEW, SWAPPED)]
    assert winners[0] != winners[1]
    assert left[0] == pytest.approx(1 - left[1], abs=1e-5)
    assert "flips" in {answered("without_positions", sentiment, text).option for text in (REVIEW, SWAPPED)}


def test_moves_are_named_by_their_size(sentiment: Bundle) -> None:
    for name, numbers in (
        ("under_a_causal_mask", {}),
        ("another_activation", {}),
        ("a_head_off", {"layer": 0, "head": 1}),
    ):
        for text in (REVIEW, SWAPPED):
            found, before = answered(name, sentiment, text, **numbers), probabilities(sentiment, text).max()
            after = before + found.value
            named = "flips" if after < 0.5 else "much" if abs(found.value) >= 0.05 else "little"
            assert found.option == named


def test_words_and_places_are_those_of_the_text(sentiment: Bundle) -> None:
    labels = sentiment.tokenizer.encode(REVIEW).labels
    assert answered("how_many_tokens", sentiment) == Finding("10", 10)
    assert answered("weightiest_word", sentiment).option == "good"
    table = embedding_matrix(sentiment.model).detach()
    row = labels.index("good")
    found = answered("nearest_word", sentiment, row=row)
    pair = [table[sentiment.tokenizer.id_of(word)] for word in ("good", found.option)]
    assert found.value == pytest.approx(float(torch.cosine_similarity(*pair, dim=0)), abs=1e-5)
    assert answered("where_a_head_looks", sentiment, layer=0, head=0).option == "previous"
    assert answered("where_a_head_looks", sentiment, layer=0, head=7).option == "next"


def test_depth_and_parts_are_told(sentiment: Bundle) -> None:
    assert answered("settled_at", sentiment).option in {str(depth) for depth in range(sentiment.config.n_layers + 1)}
    assert answered("settled_at", sentiment).value > 0.5
    assert answered("larger_part", sentiment).value >= 1
    assert answered("strongest_head", sentiment).option in ("strongest", "another")


def test_what_is_written_next_and_where_the_decoder_looks() -> None:
    gpt = shipped("gpt")
    assert answered("next_token", gpt, "Once upon a time there was a little girl named").option == "Lily"
    translation = shipped("translation-en-fr")
    text = "A man in a red shirt is riding a horse."
    assert answered("written_word", translation, text, step=6).option == "rouge"
    assert answered("where_the_decoder_looks", translation, text, step=6).option == "red"
    assert QUESTIONS["falls_most_with_length"]().option == "seq2seq-en-fr-plain"


def test_half_of_a_gradient_and_what_is_left_of_words_are_those_of_the_recurrent_layer() -> None:
    bundle = lm_bundle()
    norms = sentence_reach(prompt=Prompt(bundle, SENTENCE, 24)).norms[::-1]
    half = int(np.argmax(norms < norms[0] / 2))
    assert answered("half_of_the_gradient", bundle, SENTENCE).option == str(half)
    assert answered("half_of_the_gradient", bundle, SENTENCE).value == pytest.approx(norms[half] / norms[0])
    plain = shipped("seq2seq-en-fr-plain")
    assert answered("most_left_of", plain, "A man in a red shirt is riding a horse.").option == "horse"


@pytest.mark.nightly
def test_gates_let_learning_reach_farther_back() -> None:
    text = "To be, or not to be: that is the questio"
    back = {
        name: int(answered("half_of_the_gradient", shipped(f"lm-{name}"), text).option)
        for name in ("rnn", "gru", "lstm")
    }
    assert back["rnn"] < back["lstm"] < back["gru"]


def test_each_question_tells_what_it_takes() -> None:
    assert taken_by("where_a_head_looks") == {"layer": int, "head": int}
    assert taken_by("falls_most_with_length") == {}
    without = ("falls_most_with_length", "bits_needed", "worth_of_a_change")
    assert [name for name in QUESTIONS if "prompt" not in reads(name)] == [*without]


def required(kind: str) -> Outcome:
    bundle = bundle_of(kind)
    return require_outcome(bundle, bundle.tokenizer.encode(TEXT))


CLASSIFIER = shipped("sentiment")
REFUSED = [
    (lambda: required("encoder"), "a head that answers"),
    (lambda: required("bert"), "a [MASK]"),
    (lambda: required("translation"), "it must be one of"),
    (lambda: answered("nearest_word", CLASSIFIER, row=99), "row=99 must be from 0 to 11"),
    (lambda: answered("where_a_head_looks", CLASSIFIER, layer=4, head=0), "layer=4 must be from 0 to 3"),
    (lambda: answered("where_a_head_looks", CLASSIFIER, layer=0, head=8), "head=8 must be from 0 to 7"),
    (lambda: answered("written_word", CLASSIFIER, step=0), "must be a seq2seq or a translation"),
    (lambda: answered("next_token", CLASSIFIER), "sentiment"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
