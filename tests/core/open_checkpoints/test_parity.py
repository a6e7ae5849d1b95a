"""A checkpoint that `transformers` saved gives the same logits, hidden states and attention in our modules."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.helpers.open_checkpoints import padded, written
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import check_against_reference, kind_of_folder
from transformer_core.probe import capture
from transformer_core.trace import Trace

ATOL = 1e-4
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
}


def real_only(ours: Tensor, theirs: Tensor, real: Tensor) -> None:
    """Assert that two tensors (batch, pos, ...) agree where there is no padding."""
    torch.testing.assert_close(ours[real], theirs[real], atol=ATOL, rtol=0.0)


def compare_stacks(trace: Trace, stack: str, states, attentions, real: Tensor, bundle: Bundle) -> None:
    """Compare hidden states after the embedding and each layer, and each layer's weights."""
    post = bundle.config.norm_order == "post"
    names = [f"{stack}.embedding.{'norm.normalized' if bundle.config.embedding_norm else 'residual'}"]
    names += [f"{stack}.layer{layer}.residual" for layer in range(bundle.config.n_layers)]
    if not post:
        names[-1] = f"{stack}.final_norm.normalized"
    assert len(names) == len(states)
    for name, state in zip(names, states, strict=True):
        real_only(trace[name], state, real)
    for layer, weights in enumerate(attentions):
        ours = trace[f"{stack}.layer{layer}.self_attention.weights"]
        real_only(ours.transpose(1, 2), weights.transpose(1, 2), real)


@pytest.mark.parametrize(("architecture", "kind", "changes"), READERS.values(), ids=READERS)
def test_what_reads_one_text(architecture: str, kind: str, changes: dict, tmp_path: Path) -> None:
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
    if bundle.config.n_segments and kind != "gpt" and architecture.startswith("Bert"):
        segments = torch.tensor([[0, 0, 0, 1, 1, 1, 1]] * 3)
        asked, ours_asked = asked | {"token_type_ids": segments}, {"segment_ids": segments}
    with torch.inference_mode():
        expected = theirs(ids, **asked)
    output, trace = capture(bundle.model, ids, **ours_asked)
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
        mean = (expected.last_hidden_state * kept).sum(1) / kept.sum(1)
        torch.testing.assert_close(output, mean, atol=ATOL, rtol=0.0)
        assert "mean over real tokens" in bundle.card
    elif architecture == "GPT2LMHeadModel":
        real_only(output, expected.logits, real)
        assert bundle.config.tied_output == changes.get("tie_word_embeddings", True)


@pytest.mark.parametrize("architecture", ["RobertaForMaskedLM", "XLMRobertaForMaskedLM"])
def test_padding_inside_a_text_takes_no_position(architecture: str, tmp_path: Path) -> None:
    theirs = written(architecture, tmp_path, type_vocab_size=1)
    bundle = load(tmp_path, device="cpu")
    pad = bundle.config.pad_id
    assert pad == 1
    ids = torch.tensor([[5, 6, pad, pad, 7, 8, 9], [pad, 5, 6, 7, pad, 8, pad]])
    for text in (ids, ids[:1], ids[1:]):
        real = text != pad
        with torch.inference_mode():
            expected = theirs(text, attention_mask=real.long()).logits
        torch.testing.assert_close(bundle.model(text).mlm_logits[real], expected[real], atol=1e-5, rtol=1e-5)


def test_a_bert_of_pairs_alone_judges_them_as_theirs(tmp_path: Path) -> None:
    theirs = written("BertForNextSentencePrediction", tmp_path)
    bundle = load(tmp_path, device="cpu")
    assert bundle.kind == kind_of_folder(tmp_path) == "classifier"
    assert bundle.labels == ("next sentence", "random sentence")
    assert "whether the second of two sentences follows the first" in bundle.card
    ids, segments = padded(0), torch.tensor([[0, 0, 0, 1, 1, 1, 1]] * 3)
    with torch.inference_mode():
        expected = theirs(ids, attention_mask=(ids != 0).long(), token_type_ids=segments).logits
    torch.testing.assert_close(bundle.model(ids, segment_ids=segments), expected, atol=1e-5, rtol=1e-5)


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
    output, trace = capture(bundle.model, source, target)
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


@pytest.mark.parametrize(
    "architecture",
    [
        *("BertForPreTraining", "BertForNextSentencePrediction", "RobertaForMaskedLM", "XLMRobertaModel"),
        *("BertForTokenClassification", "DistilBertForQuestionAnswering"),
        *("GPT2Model", "MarianMTModel"),
    ],
)
def test_the_badge_finds_them_alike(architecture: str, tmp_path: Path) -> None:
    written(architecture, tmp_path)
    trust = check_against_reference(load(tmp_path, device="cpu"), "a glass")
    assert trust.row_sums is not None
    assert trust.row_sums < 1e-6
    assert trust.difference is not None
    assert trust.difference < ATOL
    assert trust.reference is not None
    assert trust.reference.startswith("transformers 5.")
