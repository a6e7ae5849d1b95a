"""A checkpoint that `transformers` saved computes the same in our modules, and what we save in theirs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

from tests.helpers import nightly_but
from tests.helpers.engine import made, padded_ids
from tests.helpers.open_checkpoints import TEXTS, padded, written
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.models import AnswerFinder, Bert, Classifier, Gpt, SentenceEncoder, TokenClassifier, Translation
from transformer_core.open_checkpoints import check_against_reference, kind_of_folder, save_hf
from transformer_core.open_checkpoints.reference_check import TOLERANCE
from transformer_core.probe import capture
from transformer_core.text import Tokenizer
from transformer_core.text.batch import make_batch
from transformer_core.trace import Trace
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.wiring import Wiring

ATOL = 1e-4
LLAMA3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 12}
LINEAR = {"rope_type": "linear", "rope_theta": 50.0, "factor": 2.0}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16}
READERS = {
    "bert": ("BertModel", "encoder", {}),
    "bert without pooler": ("BertForMaskedLM", "bert", {}),
    "bert untied": ("BertForMaskedLM", "bert", {"tie_word_embeddings": False}),
    "bert with both heads": ("BertForPreTraining", "bert", {}),
    "bert of classes": ("BertForSequenceClassification", "classifier", {"num_labels": 3, "hidden_act": "gelu_new"}),
    "bert of one segment": ("BertModel", "encoder", {"type_vocab_size": 1, "hidden_act": "relu"}),
    "distilbert": ("DistilBertModel", "encoder", {}),
    "distilbert of words": ("DistilBertForMaskedLM", "bert", {}),
    "distilbert of classes": ("DistilBertForSequenceClassification", "classifier", {"num_labels": 2}),
    "roberta": ("RobertaModel", "encoder", {"type_vocab_size": 1}),
    "roberta of words": ("RobertaForMaskedLM", "bert", {"type_vocab_size": 1}),
    "roberta of classes": ("RobertaForSequenceClassification", "classifier", {"num_labels": 4}),
    "electra": ("ElectraModel", "encoder", {}),
    "electra as wide as its embedding": ("ElectraModel", "encoder", {"embedding_size": 16, "type_vocab_size": 1}),
    "electra of replaced words": ("ElectraForPreTraining", "encoder", {}),
    "electra of words": ("ElectraForMaskedLM", "bert", {"hidden_act": "relu"}),
    "electra untied": ("ElectraForMaskedLM", "bert", {"tie_word_embeddings": False}),
    "electra of classes": ("ElectraForSequenceClassification", "classifier", {"num_labels": 3}),
    "electra of tokens": ("ElectraForTokenClassification", "tagger", {"num_labels": 3}),
    "electra of answers": ("ElectraForQuestionAnswering", "answerer", {}),
    "albert": ("AlbertModel", "encoder", {"num_hidden_layers": 3}),
    "albert as wide as its embedding": ("AlbertModel", "encoder", {"embedding_size": 16, "hidden_act": "gelu"}),
    "albert of words": ("AlbertForMaskedLM", "bert", {}),
    "albert with both heads": ("AlbertForPreTraining", "bert", {"tie_word_embeddings": False}),
    "albert of classes": ("AlbertForSequenceClassification", "classifier", {"num_labels": 3}),
    "albert of tokens": ("AlbertForTokenClassification", "tagger", {"num_labels": 3}),
    "albert of answers": ("AlbertForQuestionAnswering", "answerer", {}),
    "bert of words with another activation": ("BertForMaskedLM", "bert", {"hidden_act": "relu"}),
    "roberta of words with another activation": ("RobertaForMaskedLM", "bert", {"hidden_act": "silu"}),
    "distilbert of words with another activation": ("DistilBertForMaskedLM", "bert", {"activation": "relu"}),
    "modernbert": ("ModernBertModel", "encoder", {}),
    "modernbert of words": ("ModernBertForMaskedLM", "bert", {"classifier_activation": "silu"}),
    "modernbert untied": ("ModernBertForMaskedLM", "bert", {"tie_word_embeddings": False, "norm_bias": True}),
    "modernbert with biases": (
        "ModernBertForMaskedLM",
        "bert",
        {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True},
    ),
    "modernbert of classes": ("ModernBertForSequenceClassification", "classifier", {"num_labels": 3}),
    "modernbert of the mean": (
        "ModernBertForSequenceClassification",
        "classifier",
        {"num_labels": 2, "classifier_pooling": "mean", "classifier_activation": "relu"},
    ),
    "bert with the old name of gelu": ("BertForMaskedLM", "bert", {"hidden_act": "gelu_python"}),
    "bert of tokens": ("BertForTokenClassification", "tagger", {"num_labels": 5}),
    "bert of answers": ("BertForQuestionAnswering", "answerer", {}),
    "distilbert of tokens": ("DistilBertForTokenClassification", "tagger", {"num_labels": 3}),
    "distilbert of answers": ("DistilBertForQuestionAnswering", "answerer", {}),
    "roberta of tokens": ("RobertaForTokenClassification", "tagger", {"type_vocab_size": 1, "num_labels": 4}),
    "roberta of answers": ("RobertaForQuestionAnswering", "answerer", {"type_vocab_size": 1}),
    "xlm-roberta of tokens": ("XLMRobertaForTokenClassification", "tagger", {"type_vocab_size": 1, "num_labels": 3}),
    "xlm-roberta of answers": ("XLMRobertaForQuestionAnswering", "answerer", {"type_vocab_size": 1}),
    "xlm-roberta": ("XLMRobertaModel", "encoder", {"type_vocab_size": 1}),
    "xlm-roberta of words": ("XLMRobertaForMaskedLM", "bert", {"type_vocab_size": 1}),
    "xlm-roberta of classes": ("XLMRobertaForSequenceClassification", "classifier", {"num_labels": 3}),
    "gpt2": ("GPT2LMHeadModel", "gpt", {}),
    "gpt2 without head": ("GPT2Model", "gpt", {"activation_function": "gelu", "scale_attn_weights": False}),
    "gpt2 untied": ("GPT2LMHeadModel", "gpt", {"tie_word_embeddings": False, "n_inner": 40}),
    "llama": ("LlamaForCausalLM", "gpt", {"tie_word_embeddings": True}),
    "llama untied": ("LlamaForCausalLM", "gpt", {"attention_bias": True, "mlp_bias": True}),
    "llama 3": ("LlamaForCausalLM", "gpt", {"rope_parameters": LLAMA3}),
    "llama stretched": ("LlamaForCausalLM", "gpt", {"rope_parameters": LINEAR}),
    "mistral": ("MistralForCausalLM", "gpt", {}),
    "mistral without windows": ("MistralForCausalLM", "gpt", {"sliding_window": None}),
    "qwen2": ("Qwen2ForCausalLM", "gpt", {}),
    "qwen2 with windows": ("Qwen2ForCausalLM", "gpt", {"use_sliding_window": True, "max_window_layers": 1}),
    "qwen2 by yarn": ("Qwen2ForCausalLM", "gpt", {"rope_parameters": YARN}),
    "qwen3": ("Qwen3ForCausalLM", "gpt", {"tie_word_embeddings": True}),
    "gemma": ("GemmaForCausalLM", "gpt", {}),
    "gemma without head": ("GemmaModel", "gpt", {}),
    "gemma 2": ("Gemma2ForCausalLM", "gpt", {"final_logit_softcapping": 2.0, "attn_logit_softcapping": 1.0}),
    "gemma 3": ("Gemma3ForCausalLM", "gpt", {}),
    "phi 3": ("Phi3ForCausalLM", "gpt", {}),
    "olmo 2": ("Olmo2ForCausalLM", "gpt", {}),
    "pythia": ("GPTNeoXForCausalLM", "gpt", {}),
    "gpt-neox one after the other": ("GPTNeoXForCausalLM", "gpt", {"use_parallel_residual": False}),
}


def real_only(ours: Tensor, theirs: Tensor, real: Tensor) -> None:
    """Assert that two tensors (batch, pos, ...) agree where there is no padding."""
    torch.testing.assert_close(ours[real], theirs[real], atol=ATOL, rtol=0.0)


def compare_stacks(trace: Trace, stack: str, states, attentions, real: Tensor, bundle: Bundle) -> None:
    """Compare hidden states after the embedding and each layer, and each layer's weights."""
    wiring = Wiring(bundle.config)
    between = (f"{stack}.layer{layer}.residual" for layer in range(bundle.config.n_layers - 1))
    names = [wiring.entering(stack), *between, wiring.leaving(stack)]
    assert len(names) == len(states)
    for name, state in zip(names, states, strict=True):
        real_only(trace[name], state, real)
    for layer, weights in enumerate(attentions):
        ours = trace[f"{stack}.layer{layer}.self_attention.weights"]
        real_only(ours.transpose(1, 2), weights.transpose(1, 2), real)


GATE = (
    *("modernbert", "modernbert untied", "modernbert of classes"),
    *("albert", "albert with both heads", "albert of classes", "bert of words with another activation"),
    *("bert", "bert with both heads", "bert of classes", "bert of tokens", "bert of answers", "bert untied"),
    *("distilbert", "distilbert of classes", "roberta of words", "roberta of classes", "xlm-roberta"),
    *(
        "gpt2",
        "gpt2 without head",
        "gpt2 untied",
        "electra of replaced words",
        "electra of words",
        "electra of classes",
    ),
)


@pytest.mark.parametrize("name", nightly_but(READERS, GATE))
def test_what_reads_one_text(name: str, tmp_path: Path) -> None:
    architecture, kind, changes = READERS[name]
    theirs = written(architecture, tmp_path, **changes)
    assert kind_of_folder(tmp_path) == kind
    bundle = load(tmp_path, device="cpu")
    assert bundle.kind == kind
    pad_id = bundle.config.pad_id
    ids = padded(0 if pad_id is None else pad_id)
    real = torch.ones_like(ids, dtype=torch.bool)
    for row in range(3):
        real[row, 7 - row :] = False
    asked = {"attention_mask": real.long(), "output_hidden_states": True, "output_attentions": True}
    ours_asked = {}
    if bundle.config.n_segments and kind != "gpt" and architecture.startswith(("Bert", "Electra", "Albert")):
        segments = torch.tensor([[0, 0, 0, 1, 1, 1, 1]] * 3)
        asked, ours_asked = asked | {"token_type_ids": segments}, {"segment_ids": segments}
    with torch.inference_mode():
        expected = theirs(ids, **asked)
    output, trace = capture(bundle.model, ids.masked_fill(~real, bundle.config.padding), **ours_asked)
    compare_stacks(
        trace, "decoder" if kind == "gpt" else "encoder", expected.hidden_states, expected.attentions, real, bundle
    )
    if kind == "classifier":
        torch.testing.assert_close(output, expected.logits, atol=ATOL, rtol=0.0)
        assert bundle.labels == tuple(f"LABEL_{k}" for k in range(changes["num_labels"]))
    elif kind == "bert":
        real_only(output.mlm_logits, expected.get("logits", expected.get("prediction_logits")), real)
        assert bundle.config.pair_head == (architecture == "BertForPreTraining")
        if bundle.config.pair_head:
            torch.testing.assert_close(output.nsp_logits, expected.seq_relationship_logits, atol=ATOL, rtol=0.0)
    elif kind == "tagger":
        real_only(output, expected.logits, real)
        assert bundle.labels == tuple(f"LABEL_{k}" for k in range(changes["num_labels"]))
        assert "labels every token" in bundle.card
    elif kind == "answerer":
        for bound, theirs_of_bound in enumerate((expected.start_logits, expected.end_logits)):
            real_only(output[..., bound], theirs_of_bound, real)
        assert bundle.labels == ()
    elif kind == "encoder":
        kept = real[..., None].float()
        mean = (expected.hidden_states[-1] * kept).sum(1) / kept.sum(1)
        torch.testing.assert_close(output, mean, atol=ATOL, rtol=0.0)
        assert "mean over real tokens" in bundle.card
    elif architecture.endswith(("LMHeadModel", "CausalLM")):
        real_only(output, expected.logits, real)
        assert bundle.config.tied_output == theirs.config.tie_word_embeddings


TYPED = ("BertForMaskedLM", "DistilBertModel", "RobertaForMaskedLM", "XLMRobertaModel")


@pytest.mark.parametrize("segments", [1, 2])
@pytest.mark.parametrize("architecture", nightly_but(TYPED, ["BertForMaskedLM", "RobertaForMaskedLM"]))
def test_a_typed_padding_token_is_read_as_theirs_reads_it(architecture: str, segments: int, tmp_path: Path) -> None:
    theirs = written(architecture, tmp_path, **({} if "Distil" in architecture else {"type_vocab_size": segments}))
    bundle = load(tmp_path, device="cpu")
    pad = bundle.config.pad_id
    ids = torch.tensor([[5, 6, pad, pad, 7, 8, 9], [pad, 5, 6, 7, pad, pad, pad]])
    real = torch.ones_like(ids, dtype=torch.bool)
    real[1, -2:] = False
    for rows in (slice(2), slice(1), slice(1, 2)):
        with torch.inference_mode():
            asked = {"output_hidden_states": True, "output_attentions": True}
            expected = theirs(ids[rows], attention_mask=real[rows].long(), **asked)
        given = ids.masked_fill(~real, bundle.config.padding)[rows]
        _, trace = capture(bundle.model, given)
        compare_stacks(trace, "encoder", expected.hidden_states, expected.attentions, real[rows], bundle)
    text = "a [PAD] glass"
    read = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)(text)
    assert all(read["attention_mask"])
    assert list(bundle.tokenizer.encode(text).ids) == read["input_ids"]


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        ("GPT2LMHeadModel", {"pad_token_id": 5}),  # "a"
        ("BertForMaskedLM", {"pad_token_id": 1}),  # [UNK]
        ("BertForSequenceClassification", {"pad_token_id": 2, "num_labels": 3}),  # [CLS]
        ("DistilBertForMaskedLM", {"pad_token_id": 6}),  # "glass"
    ],
)
def test_what_was_padded_is_hidden_and_no_token_for_its_id(architecture: str, changes: dict, tmp_path: Path) -> None:
    theirs = written(architecture, tmp_path, **changes)
    bundle = load(tmp_path, device="cpu")
    texts = ("a glass! unheard of", "a glasses a", "[UNK] a")
    batch = make_batch([bundle.tokenizer.encode(text) for text in texts], padding=bundle.config.padding)
    ids = batch.token_ids.masked_fill(~batch.mask, changes["pad_token_id"])
    with torch.inference_mode():
        expected = theirs(ids, attention_mask=batch.mask.long()).logits
    output = bundle.model(batch.token_ids)
    real = batch.mask if expected.dim() == 3 else slice(None)
    ours = getattr(output, "mlm_logits", output)
    torch.testing.assert_close(ours[real], expected[real], atol=ATOL, rtol=0.0)
    for row, encoding in enumerate(batch.encodings):
        alone = bundle.model(torch.tensor([encoding.ids]))
        torch.testing.assert_close(
            getattr(alone, "mlm_logits", alone)[0], ours[row][: len(encoding)] if expected.dim() == 3 else ours[row]
        )


def test_a_bert_of_pairs_alone_judges_them_as_theirs(tmp_path: Path) -> None:
    theirs = written("BertForNextSentencePrediction", tmp_path)
    bundle = load(tmp_path, device="cpu")
    assert bundle.kind == kind_of_folder(tmp_path) == "classifier"
    assert bundle.labels == ("next sentence", "random sentence")
    assert "whether the second of two sentences follows the first" in bundle.card
    ids, segments = padded(0), torch.tensor([[0, 0, 0, 1, 1, 1, 1]] * 3)
    with torch.inference_mode():
        expected = theirs(ids, attention_mask=(ids != 0).long(), token_type_ids=segments).logits
    ours = bundle.model(ids.masked_fill(ids == 0, bundle.config.padding), segment_ids=segments)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": False, "activation_function": "relu"}])
def test_marian_reads_and_writes(changes: dict, tmp_path: Path) -> None:
    theirs = written("MarianMTModel", tmp_path, **changes)
    assert kind_of_folder(tmp_path) == "translation"
    bundle = load(tmp_path, device="cpu")
    source, target = padded(59), padded(59, length=5, seed=1)
    target[:, 0] = 59
    real_source, real_target = source != 59, target != 59
    real_target[:, 0] = True
    with torch.inference_mode():
        expected = theirs(
            source,
            attention_mask=real_source.long(),
            decoder_input_ids=target,
            output_hidden_states=True,
            output_attentions=True,
        )
    padding = bundle.config.padding
    output, trace = capture(
        bundle.model, source.masked_fill(~real_source, padding), target.masked_fill(~real_target, padding)
    )
    real_only(output, expected.logits, real_target)
    states, attentions = expected.encoder_hidden_states, expected.encoder_attentions
    compare_stacks(trace, "encoder", states, attentions, real_source, bundle)
    states, attentions = expected.decoder_hidden_states, expected.decoder_attentions
    compare_stacks(trace, "decoder", states, attentions, real_target, bundle)
    for layer, weights in enumerate(expected.cross_attentions):
        ours = trace[f"decoder.layer{layer}.cross_attention.weights"]
        real_only(ours.transpose(1, 2), weights.transpose(1, 2), real_target)
    assert bundle.tokenizer.bos_id == bundle.config.pad_id == 59
    assert bundle.model.output.proj.bias.any()


REFERENCES = (
    *("BertForPreTraining", "BertForNextSentencePrediction", "RobertaForMaskedLM", "XLMRobertaModel"),
    *("BertForTokenClassification", "DistilBertForQuestionAnswering", "GPT2Model", "MarianMTModel"),
    *("ElectraForPreTraining", "ElectraForMaskedLM", "AlbertForPreTraining"),
)


@pytest.mark.parametrize("architecture", nightly_but(REFERENCES, ["BertForPreTraining", "GPT2Model", "MarianMTModel"]))
def test_the_badge_finds_them_alike(architecture: str, tmp_path: Path) -> None:
    written(architecture, tmp_path)
    trust = check_against_reference(load(tmp_path, device="cpu"), "a glass")
    assert trust.row_sums is not None
    assert trust.row_sums < 1e-6
    assert trust.difference is not None
    assert trust.difference < ATOL
    assert trust.other_numbers is None
    assert trust.reference is not None
    assert trust.reference.startswith("transformers 5.")


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
