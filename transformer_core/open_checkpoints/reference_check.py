"""Reference check: attention sums to 1, and tokens and outputs agree with the `transformers` library's.

Tokens are compared first: a model that is given other ids than its own library gives it agrees on nothing that matters.
"""

import importlib.util
import json
import tempfile
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.bundle_files import BundleError
from transformer_core.models import AnswerFinder, Bert, Translation
from transformer_core.open_checkpoints.config_json import ConfigJson
from transformer_core.open_checkpoints.load import architecture_of, family_of
from transformer_core.open_checkpoints.save import save_hf
from transformer_core.probe import Probe
from transformer_core.trace import Trace

SAMPLE = "A glass engine shows every number that it computes, and each of them can be checked."
STEMS = (
    *("The Film was good.", "Café à Noël: NAÏVE", "你好，世界。日本語のテキスト", "🙂 👩‍🚀 cafe\u0301"),
    *("  two  blanks\tand a tab ", "don't can't I'm 1999, 3.14", "zzyzx qwrtp unheard-of", "<b>&amp;</b> [x]"),
    *("مرحبا שלום", "ﬁ ﷺ ½ ① ｆｕｌｌ"),
)
MOST_TEXTS, MOST_PAIRS, MOST_MARKS, MOST_COMPUTED = 100, 10, 7, 4
PAIRED = ("bert", "classifier", "encoder", "tagger", "answerer")
LIBRARY = "transformers"
HEADS = ("logits", "prediction_logits", "seq_relationship_logits", "start_logits", "end_logits")


@dataclass(frozen=True)
class Trust:
    """What was found.

    Args:
        row_sums: the greatest |sum - 1| over all rows of attention weights; None where the model attends to nothing.
        difference: the greatest of all logits and hidden states from the reference's, over several texts; None where
            there is none.
        reference: its name and version; None where it is not installed, or lacks such a model.
        texts: how many texts both tokenizers cut; 0 where the reference has none that can be read.
        cut: the first text that they cut otherwise, with our tokens and theirs; None where they agree.
    """

    row_sums: float | None
    difference: float | None
    reference: str | None
    texts: int = 0
    cut: tuple[str, tuple[str, ...], tuple[str, ...]] | None = None


@torch.inference_mode()
def check_against_reference(bundle: Bundle, text: str = SAMPLE) -> Trust:
    """Run a model over a sentence and compare.

    A checkpoint that was read from a folder is read there by the reference too; any other is written for it first.

    Args:
        bundle: of any kind.
        text: the sentence; a translation reads it as source and as target.

    Raises:
        ValueError: the text cannot be encoded.
    """
    asked = [_inputs(bundle, one) for one in (text, *STEMS[:MOST_COMPUTED])]
    found = []
    for inputs in asked:
        probe = Probe()
        found.append((bundle.model(*inputs, probe=probe), probe.trace))
    sums = [tensor.double().sum(-1) for name, tensor in found[0][1].items() if name.endswith("weights")]
    row_sums = max((float((total - 1).abs().max()) for total in sums), default=None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = _folder(bundle, Path(scratch))
        if folder is None:
            return Trust(row_sums, None, None)
        texts, cut = _cut_alike(bundle, folder)
        theirs = _reference(bundle, folder, asked)
    pairs = (
        pair
        for (output, trace), computed in zip(found, theirs, strict=True)
        for pair in zip([*_scores(bundle, output), *_stream(bundle, trace)], computed, strict=True)
    )
    difference = max(float((one.float().cpu() - other.float()).abs().max()) for one, other in pairs)
    return Trust(row_sums, difference, f"{LIBRARY} {importlib.import_module(LIBRARY).__version__}", texts, cut)


def _inputs(bundle: Bundle, text: str) -> list[Tensor]:
    ids = bundle.tokenizer.encode(text, max_len=bundle.config.max_len - 1).ids or (0,)
    device = next(bundle.model.parameters()).device
    inputs = [torch.tensor([ids], device=device)]  # (batch, pos)
    if bundle.kind in ("translation", "seq2seq"):
        inputs.append(torch.tensor([[bundle.tokenizer.bos_id or 0, *ids]], device=device))
    return inputs


def _cut_alike(bundle: Bundle, folder: Path) -> tuple[int, tuple[str, tuple[str, ...], tuple[str, ...]] | None]:
    """Let both tokenizers cut the same texts, with special and added tokens, alone and in pairs, up to a difference."""
    try:
        theirs = importlib.import_module(LIBRARY).AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except Exception:  # that library's errors have no common base but this
        return 0, None
    marks = [one["content"] for one in json.loads(bundle.tokenizer.to_json())["added_tokens"][:MOST_MARKS]]
    texts = [*STEMS, *map(str.upper, STEMS), *map(str.lower, STEMS)]
    texts += [f"{text} {mark} {text[:4]}{mark}" for mark in marks for text in STEMS]
    texts += map(" ".join, permutations(STEMS, 2))
    asked = [(text, None) for text in texts[:MOST_TEXTS]]
    if bundle.kind in PAIRED:
        asked += list(pairwise(texts))[:MOST_PAIRS]
    for text, pair in asked:
        ours = bundle.tokenizer.encode(text, pair).ids
        other = theirs(text, pair)["input_ids"] if pair else theirs(text)["input_ids"]
        if list(ours) != list(other):
            tokens = tuple(bundle.tokenizer.token_of(id_) for id_ in ours)
            both = text if pair is None else f"{text} | {pair}"
            return len(asked), (both, tokens, tuple(theirs.convert_ids_to_tokens(other)))
    return len(asked), None


def _scores(bundle: Bundle, output: Any) -> list[Tensor]:
    """Return our scores of words and classes; an encoder has none."""
    if bundle.kind == "encoder":
        return []
    if isinstance(bundle.model, Bert):
        return [output.mlm_logits, output.nsp_logits] if bundle.config.pair_head else [output.mlm_logits]
    return list(output.unbind(-1)) if isinstance(bundle.model, AnswerFinder) else [output]


def _stream(bundle: Bundle, trace: Trace) -> list[Tensor]:
    """Return what leaves the embedding and each layer, the encoder's first; the last of a pre-norm stack normalised."""
    config, found = bundle.config, []
    stacks = ("encoder", "decoder") if isinstance(bundle.model, Translation) else ("encoder",)
    for stack in ("decoder",) if bundle.kind == "gpt" else stacks:
        found.append(f"{stack}.embedding.{'norm.normalized' if config.embedding_norm else 'residual'}")
        found += [f"{stack}.layer{layer}.residual" for layer in range(config.n_layers)]
        if config.norm_order == "pre":
            found[-1] = f"{stack}.final_norm.normalized"
    return [trace[name] for name in found if name in trace]


def _folder(bundle: Bundle, scratch: Path) -> Path | None:
    """Return a folder that the reference can read, or None where it is not installed or has no such model."""
    if importlib.util.find_spec(LIBRARY) is None:
        return None
    if bundle.source is not None:
        return bundle.source
    try:
        save_hf(bundle, scratch)
    except BundleError:
        return None
    return scratch


def _reference(bundle: Bundle, folder: Path, asked: list[list[Tensor]]) -> list[list[Tensor]]:
    """Return what the reference computes of several inputs."""
    settings = ConfigJson.read(folder)
    name = architecture_of(family_of(settings), settings)
    if name == "BertForMaskedLM" and bundle.config.pair_head:
        name = "BertForPreTraining"
    if name == "GPT2Model":
        name = "GPT2LMHeadModel"
    theirs = getattr(importlib.import_module(LIBRARY), name).from_pretrained(
        folder,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        attn_implementation="eager",
        dtype=torch.float32,
    )
    theirs.eval()
    return [_computed(theirs, inputs) for inputs in asked]


def _computed(theirs: Any, inputs: list[Tensor]) -> list[Tensor]:
    arguments = {"input_ids": inputs[0].cpu()}
    if len(inputs) > 1:
        arguments["decoder_input_ids"] = inputs[1].cpu()
    output = theirs(**arguments, output_hidden_states=True)
    heads = [output[name] for name in HEADS if name in output]
    if len(inputs) > 1:
        return [*heads, *output.encoder_hidden_states, *output.decoder_hidden_states]
    return [*heads, *output.hidden_states]
