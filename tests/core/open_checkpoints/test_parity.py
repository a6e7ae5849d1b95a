"""A checkpoint that `transformers` saved computes the same in our modules, whatever its family and type of numbers."""

from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.helpers import nightly_but
from tests.helpers.open_checkpoints import change_settings, padded, written
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import check_against_reference, kind_of_folder
from transformer_core.probe import capture
from transformer_core.text.batch import make_batch
from transformer_core.trace import Trace
from transformer_core.wiring import Wiring

ATOL = 1e-5
LLAMA3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 12}
LINEAR = {"rope_type": "linear", "rope_theta": 50.0, "factor": 2.0}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 100.0, "factor": 4.0}
LONGROPE = {"rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0, 1.25], "long_factor": [2.0, 9.0]}
LONGROPE |= {"original_max_position_embeddings": 8}
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
    "phi 3 by longrope": (
        "Phi3ForCausalLM",
        "gpt",
        {"rope_parameters": LONGROPE, "original_max_position_embeddings": 8},
    ),
    "llama by dynamic": ("LlamaForCausalLM", "gpt", {"rope_parameters": DYNAMIC}),
    "olmo 2": ("Olmo2ForCausalLM", "gpt", {}),
    "mixtral": ("MixtralForCausalLM", "gpt", {}),
    "mixtral without windows": ("MixtralForCausalLM", "gpt", {"sliding_window": None, "tie_word_embeddings": True}),
    "qwen2 moe": ("Qwen2MoeForCausalLM", "gpt", {}),
    "qwen2 moe with windows": (
        "Qwen2MoeForCausalLM",
        "gpt",
        {"use_sliding_window": True, "max_window_layers": 2, "norm_topk_prob": True, "qkv_bias": False},
    ),
    "qwen3 moe": ("Qwen3MoeForCausalLM", "gpt", {}),
    "qwen3 moe with windows": ("Qwen3MoeForCausalLM", "gpt", {"use_sliding_window": True, "norm_topk_prob": True}),
    "olmoe": ("OlmoeForCausalLM", "gpt", {}),
    "olmoe without head": ("OlmoeModel", "gpt", {"norm_topk_prob": True, "tie_word_embeddings": True}),
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
    *("gpt2", "gpt2 without head", "gpt2 untied", "mixtral", "qwen2 moe", "phi 3 by longrope"),
    *("electra of replaced words", "electra of words", "electra of classes"),
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


TRANSLATING = {
    "marian": ("MarianMTModel", {}),
    "marian untied": ("MarianMTModel", {"tie_word_embeddings": False, "activation_function": "relu"}),
    "t5": ("T5ForConditionalGeneration", {}),
    "mt5": ("MT5ForConditionalGeneration", {"feed_forward_proj": "gated-gelu"}),
    "flan": ("T5ForConditionalGeneration", {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"}),
}


@pytest.mark.parametrize("name", TRANSLATING)
def test_what_reads_and_writes(name: str, tmp_path: Path) -> None:
    architecture, changes = TRANSLATING[name]
    theirs = written(architecture, tmp_path, **changes)
    assert kind_of_folder(tmp_path) == "translation"
    bundle = load(tmp_path, device="cpu")
    pad = bundle.config.pad_id
    assert pad is not None
    source, target = padded(pad), padded(pad, length=5, seed=1)
    target[:, 0] = pad
    real_source, real_target = source != pad, target != pad
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
    assert bundle.tokenizer.bos_id == pad == theirs.config.decoder_start_token_id
    assert bundle.config.output_bias == (architecture == "MarianMTModel")
    assert bundle.config.tied_output == (theirs.get_output_embeddings().weight is theirs.get_input_embeddings().weight)


REFERENCES = (
    *("BertForPreTraining", "BertForNextSentencePrediction", "RobertaForMaskedLM", "XLMRobertaModel"),
    *("BertForTokenClassification", "DistilBertForQuestionAnswering", "GPT2Model", "MarianMTModel"),
    *("MixtralForCausalLM", "OlmoeForCausalLM"),
    *("ElectraForPreTraining", "ElectraForMaskedLM", "AlbertForPreTraining", "T5ForConditionalGeneration"),
    "MT5ForConditionalGeneration",
)


@pytest.mark.parametrize("architecture", nightly_but(REFERENCES, ["GPT2Model"]))
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


def test_a_flan_of_its_own_files_scores_words_by_a_matrix_of_its_own(tmp_path: Path) -> None:
    written("T5ForConditionalGeneration", tmp_path, feed_forward_proj="gated-gelu")
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = torch.randn(tensors["shared.weight"].shape, generator=torch.Generator().manual_seed(2))
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    change_settings(tmp_path, tie_word_embeddings=False, scale_decoder_outputs=None)
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path, local_files_only=True).eval()
    bundle = load(tmp_path, device="cpu")
    assert (bundle.config.tied_output, bundle.config.scale_output) == (False, False)
    source, target = torch.tensor([[5, 6, 7, 1]]), torch.tensor([[0, 8, 9]])
    with torch.inference_mode():
        expected = theirs(input_ids=source, decoder_input_ids=target).logits
    torch.testing.assert_close(bundle.model(source, target), expected, atol=1e-5, rtol=1e-5)
    assert "translate English to German" in bundle.card


NEW = ("ElectraForMaskedLM", "AlbertForMaskedLM", "ModernBertForMaskedLM", "T5ForConditionalGeneration")


@pytest.mark.parametrize("architecture", NEW)
def test_numbers_of_every_type_and_shard_are_those_of_theirs(architecture: str, tmp_path: Path) -> None:
    theirs = written(architecture, tmp_path)
    ids = padded(50)[:1]
    inputs = (ids, ids) if architecture.startswith("T5") else (ids,)
    named = dict(zip(("input_ids", "decoder_input_ids"), inputs, strict=False))
    for kind, dtype in (("F32", torch.float32), ("F16", torch.float16), ("BF16", torch.bfloat16)):
        folder = tmp_path / str(dtype)
        written(architecture, folder, max_shard_size="4KB", dtype=dtype)
        rounded = type(theirs).from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
        with torch.inference_mode():
            expected = rounded(**named).logits
        bundle = load(folder, device="cpu")
        assert [of for of, _ in bundle.stored] == [kind]
        assert {parameter.dtype for parameter in bundle.model.parameters()} == {torch.float32}
        output = bundle.model(*inputs)
        torch.testing.assert_close(getattr(output, "mlm_logits", output), expected, atol=1e-5, rtol=1e-5)
