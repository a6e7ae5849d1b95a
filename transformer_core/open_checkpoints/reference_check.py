"""Reference check: texts become the same ids as the `transformers` library's, and outputs on the same weights agree."""

import importlib.util
import json
import tempfile
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
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
from transformer_core.text import Tokenizer
from transformer_core.trace import Trace

SAMPLE = "A glass engine shows every number that it computes, and each of them can be checked."
LIBRARY = "transformers"
WORDS = (
    *("The", "film", "Film", "WAS", "good", "Café", "cafe", "naïve", "Ünïcode", "İstanbul", "ﬁ", "ß", "don't", "x_y"),
    *(
        "a-b",
        "12,5",
        "你好",
        "世界",
        "é",
        "😀",
        "🧑‍🚀",
        "zqxjk",
        "…",
        "¿qué?",
        "(a)",
        " b",
        "c  d",
        "\t",
        "Ω",
        "ﷺ",
        "привет",
    ),
)
N_TEXTS, MOST_ADDED, MOST_COMPUTED = 100, 20, 4
HEADS = ("logits", "prediction_logits", "seq_relationship_logits", "start_logits", "end_logits")


@dataclass(frozen=True)
class OtherIds:
    """A text, or two, that the reference cuts into other tokens.

    Args:
        text, pair: as they were given; None for no second text.
        ours, theirs: the tokens, as the vocabulary writes them.
    """

    text: str
    pair: str | None
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


@dataclass(frozen=True)
class Trust:
    """What was found on a hundred texts, alone and in pairs; numbers on a sentence and four of them.

    Args:
        row_sums: the greatest |sum - 1| over all rows of attention weights; None where the model attends to nothing.
        difference: the greatest of all logits and hidden states from the reference's; None where there is none.
        reference: its name and version; None where it is not installed, or lacks such a model.
        n_texts: how many texts, pairs among them, were cut by both; 0 where the reference has no tokenizer for it.
        other_ids: the first of them that the reference cuts otherwise; None where there is none.
    """

    row_sums: float | None
    difference: float | None
    reference: str | None
    n_texts: int = 0
    other_ids: OtherIds | None = None


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
    texts = _texts(bundle.tokenizer)
    asked = [_inputs(bundle, one) for one in (text, *texts[-MOST_COMPUTED:])]
    found = []
    for inputs in asked:
        probe = Probe()
        found.append((bundle.model(*inputs, probe=probe), probe.trace))
    sums = [tensor.cpu().double().sum(-1) for name, tensor in found[0][1].items() if name.endswith("weights")]
    row_sums = max((float((total - 1).abs().max()) for total in sums), default=None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = _folder_for_reference(bundle, Path(scratch))
        if folder is None:
            return Trust(row_sums, None, None)
        n_texts, other_ids = _compared_ids(bundle.tokenizer, folder, texts)
        theirs = _reference(bundle, asked, folder)
    pairs = (
        pair
        for (output, trace), computed in zip(found, theirs, strict=True)
        for pair in zip([*_scores(bundle, output), *_stream(bundle, trace)], computed, strict=True)
    )
    difference = max(float((one.float().cpu() - other.float()).abs().max()) for one, other in pairs)
    version = f"{LIBRARY} {importlib.import_module(LIBRARY).__version__}"
    return Trust(row_sums, difference, version, n_texts, other_ids)


def _inputs(bundle: Bundle, text: str) -> list[Tensor]:
    ids = bundle.tokenizer.encode(text, max_len=bundle.config.max_len - 1).ids or (0,)
    device = next(bundle.model.parameters()).device
    inputs = [torch.tensor([ids], device=device)]  # (batch, pos)
    if bundle.kind in ("translation", "seq2seq"):
        inputs.append(torch.tensor([[bundle.tokenizer.bos_id or 0, *ids]], device=device))
    return inputs


def _texts(tokenizer: Tokenizer) -> list[str]:
    """Return texts of words and signs of many kinds, with the special and the added tokens of a vocabulary."""
    added = [token["content"] for token in json.loads(tokenizer.to_json())["added_tokens"]][:MOST_ADDED]
    words = [*WORDS, *added, *(token.upper() for token in added)]
    spread = [islice(cycle(words), start, None) for start in (0, 3, 8)]
    threes = [f"{one} {two}{three} ." for one, two, three in islice(zip(*spread, strict=False), N_TEXTS)]
    return ["", *words, *threes][: max(N_TEXTS, 2 * len(words))]


def _compared_ids(tokenizer: Tokenizer, folder: Path, texts: list[str]) -> tuple[int, OtherIds | None]:
    """Return how many texts and pairs the reference cut, too, and the first that it cuts otherwise."""
    library = importlib.import_module(LIBRARY)
    try:
        settings = ConfigJson.read(folder)  # its model_type may be missing
        config = library.AutoConfig.for_model(**(settings.values | {"model_type": family_of(settings).model_type}))
        theirs = library.AutoTokenizer.from_pretrained(
            folder, config=config, local_files_only=True, trust_remote_code=False
        )
    except Exception:  # a class that needs another package, and whatever else it may raise
        return 0, None
    asked = [(text, None) for text in texts] + list(pairwise(texts))
    for text, pair in asked:
        ours, ids = tokenizer.encode(text, pair), theirs(text, pair)["input_ids"]
        if list(ours.ids) != ids:
            return len(asked), OtherIds(text, pair, ours.tokens, tuple(theirs.convert_ids_to_tokens(ids)))
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


def _folder_for_reference(bundle: Bundle, scratch: Path) -> Path | None:
    """Return where the reference reads the model, or None where it is not installed or has no such model."""
    if importlib.util.find_spec(LIBRARY) is None:
        return None
    folder = bundle.source
    if folder is None:
        try:
            save_hf(bundle, scratch)
        except BundleError:
            return None
        folder = scratch
    return folder


def _reference(bundle: Bundle, asked: list[list[Tensor]], folder: Path) -> list[list[Tensor]]:
    """Return the same of the reference, for several inputs."""
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
