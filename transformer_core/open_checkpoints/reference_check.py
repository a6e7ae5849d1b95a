"""Reference check: attention sums to 1, and outputs agree with the `transformers` library's on the same weights."""

import importlib.util
import tempfile
from dataclasses import dataclass
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
LIBRARY = "transformers"
HEADS = ("logits", "prediction_logits", "seq_relationship_logits", "start_logits", "end_logits")


@dataclass(frozen=True)
class Trust:
    """What was found on one sentence.

    Args:
        row_sums: the greatest |sum - 1| over all rows of attention weights; None where the model attends to nothing.
        difference: the greatest of all logits and hidden states from the reference's; None where there is none.
        reference: its name and version; None where it is not installed, or lacks such a model.
    """

    row_sums: float | None
    difference: float | None
    reference: str | None


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
    ids = bundle.tokenizer.encode(text, max_len=bundle.config.max_len - 1).ids or (0,)
    device = next(bundle.model.parameters()).device
    source = torch.tensor([ids], device=device)  # (batch, pos)
    inputs = [source]
    if bundle.kind in ("translation", "seq2seq"):
        start = bundle.tokenizer.bos_id or 0
        inputs.append(torch.tensor([[start, *ids]], device=device))
    probe = Probe()
    output = bundle.model(*inputs, probe=probe)
    sums = [tensor.double().sum(-1) for name, tensor in probe.trace.items() if name.endswith("weights")]
    row_sums = max((float((total - 1).abs().max()) for total in sums), default=None)
    with tempfile.TemporaryDirectory() as scratch:
        theirs = _reference(bundle, inputs, Path(scratch))
    if theirs is None:
        return Trust(row_sums, None, None)
    pairs = zip([*_scores(bundle, output), *_stream(bundle, probe.trace)], theirs, strict=True)
    difference = max(float((one.float().cpu() - other.float()).abs().max()) for one, other in pairs)
    return Trust(row_sums, difference, f"{LIBRARY} {importlib.import_module(LIBRARY).__version__}")


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


def _reference(bundle: Bundle, inputs: list[Tensor], scratch: Path) -> list[Tensor] | None:
    """Return the same of the reference, or None where it is not installed or has no such model."""
    if importlib.util.find_spec(LIBRARY) is None:
        return None
    folder = bundle.source
    if folder is None:
        try:
            save_hf(bundle, scratch)
        except BundleError:
            return None
        folder = scratch
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
    arguments = {"input_ids": inputs[0].cpu()}
    if len(inputs) > 1:
        arguments["decoder_input_ids"] = inputs[1].cpu()
    output = theirs.eval()(**arguments, output_hidden_states=True)
    heads = [output[name] for name in HEADS if name in output]
    if len(inputs) > 1:
        return [*heads, *output.encoder_hidden_states, *output.decoder_hidden_states]
    return [*heads, *output.hidden_states]
