"""What we save is read by `transformers` and by us as it was; the badge of what was saved, and of what differs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers

from tests.helpers.engine import made, padded_ids
from tests.helpers.open_checkpoints import TEXTS, written
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.models import AnswerFinder, Bert, Classifier, Gpt, SentenceEncoder, TokenClassifier, Translation
from transformer_core.open_checkpoints import check_against_reference, save_hf
from transformer_core.open_checkpoints.reference_check import TOLERANCE
from transformer_core.text import Tokenizer
from transformer_core.untrusted.bundle_files import BundleError

SAVED_ATOL = 1e-5
BERT = {"positions": "learned", "n_segments": 2, "embedding_norm": True, "norm_order": "post"}
GPT = {"positions": "learned", "norm_order": "pre"}
WRITTEN = {
    "bert": (Bert, BERT, "BertForPreTraining"),
    "bert untied": (Bert, BERT | {"tied_output": False}, "BertForPreTraining"),
    "bert without pairs": (Bert, BERT | {"pair_head": False}, "BertForMaskedLM"),
    "classifier": (Classifier, BERT | {"pooler": "tanh", "n_classes": 3}, "BertForSequenceClassification"),
    "encoder": (SentenceEncoder, BERT | {"pooling": "mean", "activation": "relu"}, "BertModel"),
    "tagger": (TokenClassifier, BERT | {"n_classes": 3}, "BertForTokenClassification"),
    "answerer": (AnswerFinder, BERT, "BertForQuestionAnswering"),
    "gpt": (Gpt, GPT | {"activation": "gelu_tanh"}, "GPT2LMHeadModel"),
    "gpt untied": (Gpt, GPT | {"tied_output": False, "pad_id": None, "scale_scores": False}, "GPT2LMHeadModel"),
}


@pytest.fixture(scope="module", params=["wordpiece", "bpe"])
def tokenizer(request) -> Tokenizer:
    """Return a small tokenizer of our own."""
    return Tokenizer.train(request.param, [*TEXTS, "a glass box"] * 2, vocab_size=290, lowercase=True)


def bundle_of(kind: type, changes: dict, tokenizer: Tokenizer) -> Bundle:
    """Make a tiny lively bundle with room for the tokenizer's vocabulary."""
    labels = ("no", "so", "yes") if kind in (Classifier, TokenClassifier) else ()
    return Bundle("glass", made(kind, vocab_size=tokenizer.vocab_size, **changes), tokenizer, labels)


@pytest.mark.parametrize(("kind", "changes", "architecture"), WRITTEN.values(), ids=WRITTEN)
def test_theirs_reads_back_what_we_wrote(kind, changes: dict, architecture: str, tokenizer, tmp_path: Path) -> None:
    bundle = bundle_of(kind, changes, tokenizer)
    save_hf(bundle, tmp_path / "new" / "glass")
    theirs, found = getattr(transformers, architecture).from_pretrained(
        tmp_path / "new" / "glass", local_files_only=True, output_loading_info=True
    )
    assert not found["unexpected_keys"]
    assert not found["mismatched_keys"]
    assert not [name for name in found["missing_keys"] if kind is not SentenceEncoder]
    ids = padded_ids(3, 6)
    with torch.inference_mode():
        ours, expected = bundle.model(ids), theirs.eval()(ids, attention_mask=(ids != 0).long())
    real = (ids != 0) if bundle.config.pad_id == 0 else torch.ones_like(ids, dtype=torch.bool)
    if bundle.config.pad_id is None:
        with torch.inference_mode():
            expected = theirs(ids)
    scores = ours.mlm_logits if kind is Bert else ours
    if kind in (Bert, Gpt):
        logits = expected.get("logits", expected.get("prediction_logits"))
        torch.testing.assert_close(scores[real], logits[real], atol=SAVED_ATOL, rtol=0.0)
    elif kind is AnswerFinder:
        both = torch.stack([expected.start_logits, expected.end_logits], dim=-1)
        torch.testing.assert_close(scores[real], both[real], atol=SAVED_ATOL, rtol=0.0)
    elif kind is TokenClassifier:
        torch.testing.assert_close(scores[real], expected.logits[real], atol=SAVED_ATOL, rtol=0.0)
        assert theirs.config.id2label == {0: "no", 1: "so", 2: "yes"}
    elif kind is Classifier:
        torch.testing.assert_close(scores, expected.logits, atol=SAVED_ATOL, rtol=0.0)
        assert theirs.config.id2label == {0: "no", 1: "so", 2: "yes"}
    back = load(tmp_path / "new" / "glass", device="cpu")
    other = {"pad_id": None} if kind is Gpt else {"pad_is_read": True}  # theirs hides no token for its id
    config = replace(bundle.config, **other)
    assert (back.kind, back.labels, back.config) == (bundle.kind, bundle.labels, config)
    assert all(torch.equal(p, q) for p, q in zip(back.model.parameters(), bundle.model.parameters(), strict=True))
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "new" / "glass", local_files_only=True)
    for text in TEXTS:
        assert read(text)["input_ids"] == list(tokenizer.encode(text).ids) == list(back.tokenizer.encode(text).ids)
    assert read.pad_token == "[PAD]"


REFUSED = {
    "no pair of sides": (Translation, {}, "bundle='glass' is a translation; it must be one of bert, classifier, "),
    "waves": (Bert, BERT | {"positions": "sinusoidal"}, "positions='sinusoidal' cannot be written: bert has 'learned'"),
    "pre-norm": (Bert, BERT | {"norm_order": "pre"}, "norm_order='pre' cannot be written: bert has 'post'"),
    "no segments": (Bert, BERT | {"n_segments": 0}, "n_segments=0 cannot be written: bert has at least 1"),
    "no pooler": (Classifier, BERT, "pooler='none' cannot be written: bert has 'tanh'"),
    "relu": (Bert, BERT | {"activation": "relu"}, "activation='relu' cannot be written: bert has 'gelu'"),
    "free heads": (Gpt, GPT | {"d_head": 6}, "n_heads=2 times d_head=6 must be d_model=16 to be written"),
    "a gate": (Gpt, GPT | {"gated": True}, "gated=True cannot be written: gpt2 has False"),
    "one head of keys": (Gpt, GPT | {"n_kv_heads": 1}, "n_kv_heads=1 cannot be written: gpt2 has None"),
    "post-norm gpt": (Gpt, GPT | {"norm_order": "post"}, "norm_order='post' cannot be written: gpt2 has 'pre'"),
}


@pytest.mark.parametrize(("kind", "changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_theirs_lacks_is_not_written(kind, changes: dict, message: str, word_tokenizer, tmp_path: Path) -> None:
    with pytest.raises(BundleError) as caught:
        save_hf(bundle_of(kind, changes, word_tokenizer), tmp_path / "glass")
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "glass").exists()


def test_the_badge_of_our_own(word_tokenizer) -> None:
    ours = check_against_reference(bundle_of(Gpt, GPT, word_tokenizer), "a glass box")
    assert ours.row_sums is not None
    assert ours.difference is not None
    assert ours.row_sums < 1e-6
    assert ours.difference < SAVED_ATOL
    other = check_against_reference(bundle_of(Classifier, {}, word_tokenizer), "a glass box")
    assert other.row_sums is not None
    assert (other.difference, other.reference) == (None, None)


def test_the_badge_without_a_reference(word_tokenizer, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = check_against_reference(bundle_of(Bert, BERT, word_tokenizer), "a glass")
    assert found.row_sums is not None
    assert (found.difference, found.reference) == (None, None)


def test_the_badge_finds_another_number(word_tokenizer, tmp_path: Path) -> None:
    save_hf(bundle_of(Bert, BERT, word_tokenizer), tmp_path)
    bundle = load(tmp_path, device="cpu")
    with torch.no_grad():
        bundle.model.encoder.stack.layers[0].feed_forward.inner_proj.bias[0] += 0.5
    trust = check_against_reference(bundle, "a glass")
    assert trust.difference is not None
    assert trust.difference > 1e-3
    assert trust.other_numbers is not None
    assert (trust.other_numbers.site, trust.other_numbers.pads) == ("encoder.layer0.residual", 0)


def test_the_badge_finds_what_only_padding_shows(tmp_path: Path) -> None:
    written("BertModel", tmp_path)
    bundle = load(tmp_path, device="cpu")
    bundle.model.encoder.config = replace(bundle.config, pad_is_read=False)  # hides nothing of what was padded
    trust = check_against_reference(bundle, "a glass")
    assert trust.other_numbers is not None
    assert trust.other_numbers.site == "encoder.layer0.self_attention.weights"
    assert trust.other_numbers.pads > 0
    assert trust.other_numbers.difference > TOLERANCE
