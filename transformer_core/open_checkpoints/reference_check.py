"""Reference check: texts become the same ids as the `transformers` library's, and outputs on the same weights agree."""

import importlib.util
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.layers.embeddings import rows_of
from transformer_core.models import AnswerFinder, Bert, Translation
from transformer_core.open_checkpoints.load import architecture_of, family_of
from transformer_core.open_checkpoints.save import save_hf
from transformer_core.probe import Probe
from transformer_core.text import Encoding, Tokenizer, make_batch
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.untrusted.config_json import ConfigJson
from transformer_core.wiring import Wiring

SAMPLE = "A glass engine shows every number that it computes, and each of them can be checked."
LIBRARY = "transformers"
TOLERANCE = 1e-4  # for each number
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
class OtherNumbers:
    """The first tensor, in the order in which they are computed, that is further from the reference's than TOLERANCE.

    Args:
        site: its name; of scores the name of the model's output.
        text, pair: at which of the texts, or pairs, it is furthest.
        pads: how much padding followed that text in its batch.
        difference: the greatest there.
    """

    site: str
    text: str
    pair: str | None
    pads: int
    difference: float


@dataclass(frozen=True)
class Trust:
    """What was found on a hundred texts, alone and in pairs; numbers on a sentence, and on it in a padded batch.

    Args:
        row_sums: the greatest |sum - 1| over all rows of attention weights; None where the model attends to nothing.
        difference: the greatest of all logits, hidden states and attention weights from the reference's; None where
            there is none.
        reference: its name and version; None where it is not installed, or lacks such a model.
        n_texts: how many texts, pairs among them, were cut by both; 0 where the reference has no tokenizer for it.
        other_ids: the first of them that the reference cuts otherwise; None where there is none.
        other_numbers: the first tensor that differs; None where there is none.
    """

    row_sums: float | None
    difference: float | None
    reference: str | None
    n_texts: int = 0
    other_ids: OtherIds | None = None
    other_numbers: OtherNumbers | None = None


@torch.inference_mode()
def check_against_reference(bundle: Bundle, text: str = SAMPLE) -> Trust:
    """Run a model over a sentence, and over a padded batch of it with other texts, and compare.

    A checkpoint that was read from a folder is read there by the reference too; any other is written for it first.

    Args:
        bundle: of any kind.
        text: the sentence; a translation reads it as source and as target.

    Raises:
        ValueError: the text cannot be encoded.
    """
    texts = _texts(bundle.tokenizer)
    asked = _asked(bundle, text, texts[-MOST_COMPUTED:])
    probe = Probe(("*.weights",))
    bundle.model(*asked[0].inputs, probe=probe)
    sums = [tensor.cpu().double().sum(-1) for _, tensor in probe.trace.items()]
    row_sums = max((float((total - 1).abs().max()) for total in sums), default=None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = _folder_for_reference(bundle, Path(scratch))
        if folder is None:
            return Trust(row_sums, None, None)
        n_texts, other_ids = _compared_ids(bundle.tokenizer, folder, texts)
        theirs = _reference(bundle, folder)
        found = [one for batch in asked for one in _differences(bundle, theirs, batch)]
    first = next((one for one in found if not one.difference <= TOLERANCE), None)
    difference = max((one.difference for one in found), key=lambda value: (value != value, value))  # nan before all
    version = f"{LIBRARY} {importlib.import_module(LIBRARY).__version__}"
    return Trust(row_sums, difference, version, n_texts, other_ids, first)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A batch for both.

    Shapes:
        inputs: of our model, each (batch, pos); segment_ids: (batch, pos), None where it has none
    """

    encodings: tuple[Encoding, ...]
    inputs: list[Tensor]
    segment_ids: Tensor | None


def _asked(bundle: Bundle, text: str, others: list[str]) -> list[_Asked]:
    """Return a text alone, and in a padded batch with others, and with a pair of texts where the model tells two."""
    tokenizer, config = bundle.tokenizer, bundle.config
    segments = bool(getattr(config, "n_segments", 0))
    most = config.max_len - 1
    encodings = [tokenizer.encode(one, max_len=most) for one in (text, *others)]
    if segments:
        encodings.append(tokenizer.encode(others[0], others[-1], max_len=most))
    encodings = [encoding for encoding in encodings if len(encoding)]
    device = bundle.device
    found = []
    for chosen in (encodings[:1], encodings):
        batch = make_batch(chosen, padding=config.padding)
        inputs = [batch.token_ids.to(device)]
        if bundle.reader.asks == "words":
            begin = torch.full((len(chosen), 1), tokenizer.bos_id or 0)
            inputs.append(torch.cat((begin, batch.token_ids), dim=1).to(device))
        found.append(_Asked(batch.encodings, inputs, batch.segment_ids.to(device) if segments else None))
    return found


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


def _scores(bundle: Bundle, output: Any) -> dict[str, Tensor]:
    """Return our scores of words and classes by name; an encoder has none."""
    if bundle.kind == "encoder":
        return {}
    if isinstance(bundle.model, Bert):
        scores = {"mlm_logits": output.mlm_logits}
        return scores | ({"nsp_logits": output.nsp_logits} if bundle.config.pair_head else {})
    if isinstance(bundle.model, AnswerFinder):
        return dict(zip(("start_logits", "end_logits"), output.unbind(-1), strict=True))
    return {"class_logits" if bundle.kind == "classifier" else "logits": output}


OF_A_TEXT = ("class_logits", "nsp_logits")  # all others are of a token


def _stream(bundle: Bundle) -> list[str]:
    """Return names of tensors in the order in which they are computed, as _in_order has the reference's.

    These are what leaves the embedding, and of each layer its attention weights and what leaves it, the encoder's
    first; the last of a pre-norm stack normalised.
    """
    config, found = bundle.config, []
    stacks = ("encoder", "decoder") if isinstance(bundle.model, Translation) else ("encoder",)
    for stack in ("decoder",) if bundle.kind == "gpt" else stacks:
        found.append(Wiring(config).entering(stack))
        crossing = bundle.kind == "translation" and stack == "decoder"
        for layer in range(config.n_layers):
            attentions = ("self_attention", "cross_attention") if crossing else ("self_attention",)
            found += [f"{stack}.layer{layer}.{attention}.weights" for attention in attentions]
            found.append(f"{stack}.layer{layer}.residual")
        found[-1] = Wiring(config).leaving(stack)
    return found


def _in_order(states: Sequence[Tensor], *attentions: Sequence[Tensor]) -> list[Tensor]:
    found = [states[0]]
    for layer, state in enumerate(states[1:]):
        found += [*(weights[layer] for weights in attentions), state]
    return found


def _differences(bundle: Bundle, theirs: Any, asked: _Asked) -> list[OtherNumbers]:
    """Return of each tensor the text at which both are furthest apart; what was padded does not count."""
    names = _stream(bundle)
    probe = Probe(tuple(names))
    segments = {} if asked.segment_ids is None else {"segment_ids": asked.segment_ids}
    output = bundle.model(*asked.inputs, **segments, probe=probe)
    ours = {name: probe.trace[name] for name in names} | _scores(bundle, output)
    real = [ids.cpu() != bundle.config.padding for ids in asked.inputs]
    found = []
    for (name, one), other in zip(ours.items(), _computed(bundle, theirs, asked), strict=True):
        apart = (one.float().cpu() - other.float()).abs()
        if name not in OF_A_TEXT:
            own = real[0] if name.startswith("encoder") else real[-1]
            queries = {2: own, 3: own[..., None], 4: own[:, None, :, None]}[apart.dim()]
            apart = apart.masked_fill(~queries, 0.0)
        rows = apart.flatten(1).amax(1).tolist()
        row = max(range(len(rows)), key=lambda row: (rows[row] != rows[row], rows[row]))
        encoding = asked.encodings[row]
        pads = real[0].shape[1] - len(encoding)
        found.append(OtherNumbers(name, encoding.text, encoding.pair, pads, rows[row]))
    return found


def _folder_for_reference(bundle: Bundle, scratch: Path) -> Path | None:
    """Return where the reference reads the model, or None where it is not installed or has no such model."""
    if importlib.util.find_spec(LIBRARY) is None:
        return None
    folder = bundle.source
    if folder is not None and folder.is_file():  # a GGUF file, which the reference takes a minute to read
        return None
    if folder is None:
        try:
            save_hf(bundle, scratch)
        except BundleError:
            return None
        folder = scratch
    return folder


def _reference(bundle: Bundle, folder: Path) -> Any:
    """Return the reference's model."""
    settings = ConfigJson.read(folder)
    name = architecture_of(family_of(settings), settings)
    if name == "BertForMaskedLM" and bundle.config.pair_head:
        name = "BertForPreTraining"
    if bundle.kind == "encoder":
        name = next(iter(family_of(settings).kinds))
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
    return theirs.eval()


def _computed(bundle: Bundle, theirs: Any, asked: _Asked) -> list[Tensor]:
    """Return the reference's tensors, in the order of ours."""
    config = bundle.config
    arguments = {} if asked.segment_ids is None else {"token_type_ids": asked.segment_ids.cpu()}
    for prefix, ids in zip(("", "decoder_"), asked.inputs, strict=False):
        arguments[f"{prefix}input_ids"] = rows_of(ids.cpu(), config.pad_id)
        arguments[f"{prefix}attention_mask"] = (ids.cpu() != config.padding).long()
    output = theirs(**arguments, output_hidden_states=True, output_attentions=True)
    heads = [output[name] for name in HEADS if name in output]
    if len(asked.inputs) == 1:
        return [*_in_order(output.hidden_states, output.attentions), *heads]
    decoder = _in_order(output.decoder_hidden_states, output.decoder_attentions, output.cross_attentions)
    return [*_in_order(output.encoder_hidden_states, output.encoder_attentions), *decoder, *heads]
