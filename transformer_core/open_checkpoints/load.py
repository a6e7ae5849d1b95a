"""load_open: read a folder of the `transformers` library as a bundle, after checking that everything in it fits."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from transformer_core.bundle import LABELLED, MODELS, Bundle, needed_shapes
from transformer_core.config import ModelConfig
from transformer_core.device import best_device
from transformer_core.layers.initialization import shapes_alone
from transformer_core.open_checkpoints.bert import ALBERT, BERT, DISTILBERT, ELECTRA, PAIRS_ALONE, ROBERTA, XLM_ROBERTA
from transformer_core.open_checkpoints.decoders import DECODERS
from transformer_core.open_checkpoints.family import Family, Origin, Origins, names_of
from transformer_core.open_checkpoints.gguf import GgufSource
from transformer_core.open_checkpoints.gpt2 import GPT2
from transformer_core.open_checkpoints.marian import MARIAN
from transformer_core.open_checkpoints.modernbert import MODERNBERT
from transformer_core.open_checkpoints.sentence_modules import (
    SentenceModules,
    encoder_folder,
    read_modules,
    read_pooling,
)
from transformer_core.open_checkpoints.t5 import MT5, T5
from transformer_core.open_checkpoints.tokenizer_classes import TOKENIZER_CONFIG, text_of
from transformer_core.open_checkpoints.vocabularies import read_target_tokenizer, read_tokenizer
from transformer_core.text import Tokenizer
from transformer_core.text.chat import ChatTemplate
from transformer_core.untrusted.bundle_files import CONFIG, BundleError
from transformer_core.untrusted.config_json import ConfigJson, read_json
from transformer_core.untrusted.gguf_file import GgufFile, gguf_in
from transformer_core.untrusted.tensors import Tensors

ENCODERS = (BERT, DISTILBERT, ROBERTA, XLM_ROBERTA, ELECTRA, ALBERT, MODERNBERT)
FAMILIES = {family.model_type: family for family in (*ENCODERS, GPT2, MARIAN, T5, MT5, *DECODERS)}
OF_STATES = "is a state-space model, and this app reads Transformers"
OF_PICTURES = "reads pictures or sound as well, and this app reads text alone"
NOT_READ = {  # what is not supported, and why
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "jamba", "zamba", "zamba2", "bamba"), OF_STATES),
    **dict.fromkeys(
        ("rwkv", "recurrent_gemma"), "is a recurrent model of another kind, and this app reads Transformers"
    ),
    **dict.fromkeys(("gemma3", "gemma3n", "llava", "mllama", "qwen2_vl", "qwen2_5_vl", "idefics3"), OF_PICTURES),
    **dict.fromkeys(("whisper", "wav2vec2", "vit", "clip", "siglip"), OF_PICTURES),
    "umt5": "has a table of distances in each layer, and this app reads one table for all, as T5 and mT5 have",
    **dict.fromkeys(("deepseek_v2", "deepseek_v3"), "has latent attention (MLA), which is not built here"),
}
SUPPORTED = {name: tuple(family.kinds) for name, family in FAMILIES.items()}


THEIR_ENTRIES = {"model_type", "architectures", "transformers_version", "hidden_size", "n_embd", "d_model", "dim"}


def is_open_config(values: dict[str, Any]) -> bool:
    """Tell a config.json of theirs from a bundle's, which has a format and no entry of theirs."""
    return "format" not in values and not THEIR_ENTRIES.isdisjoint(values)


def family_of(settings: ConfigJson) -> Family:
    """Return the family that a config.json names, by the name of its architecture where model_type is missing.

    Raises:
        BundleError: it is not among those that are read, or none is named.
    """
    named = settings.values.get("model_type")
    if named is None:
        listed = settings.get("architectures", [])
        for family in FAMILIES.values():
            if isinstance(listed, list) and len(listed) == 1 and listed[0] in tuple(family.kinds):
                return family
        raise BundleError(
            f"{settings.where} lacks model_type, and architectures={listed!r:.100} tells of none that is supported; "
            f"supported: {', '.join(FAMILIES)}"
        )
    if not isinstance(named, str) or named not in FAMILIES:
        if isinstance(named, str) and named in NOT_READ:
            supported = ", ".join(FAMILIES)
            raise BundleError(f"{settings.where}: model_type={named!r:.60} {NOT_READ[named]}; supported: {supported}")
        raise BundleError(
            f"{settings.where}: model_type={named!r:.60} is not supported; supported: {', '.join(FAMILIES)}"
        )
    return FAMILIES[named]


def architecture_of(family: Family, settings: ConfigJson) -> str:
    """Return the architecture that a config.json names, or the family's first where it names none.

    Raises:
        BundleError: the family has it, and we do not.
    """
    named = settings.get("architectures", [])
    if named == []:
        return next(iter(family.kinds))
    if not isinstance(named, list) or len(named) != 1 or named[0] not in tuple(family.kinds):
        raise BundleError(
            f"{settings.where}: architectures={named!r:.100} is not supported; supported: {', '.join(family.kinds)}"
        )
    return named[0]


def kind_of_folder(folder: str | os.PathLike[str]) -> str | None:
    """Return the kind of model that a folder holds, from its config.json alone.

    Returns:
        An entry of bundle.MODELS; for a bundle whatever its config.json says. None where the file is missing,
        broken, or names what is not supported, which loading the folder tells in words.
    """
    folder = encoder_folder(Path(folder))
    try:
        if (path := gguf_in(folder)) is not None:
            settings = GgufSource.of(GgufFile.open(path, max_bytes=path.stat().st_size)).settings
            return family_of(settings).kinds[architecture_of(family_of(settings), settings)]
        values = read_json(folder / CONFIG)
        if not is_open_config(values):
            kind = values.get("kind")
            return kind if isinstance(kind, str) else None
        settings = ConfigJson(folder.name, values)
        family = family_of(settings)
        return family.kinds[architecture_of(family, settings)]
    except (OSError, BundleError):
        return None


CHAT_TEMPLATE = "chat_template.jinja"


def _chat_template(folder: Path) -> str:
    """Return the template of a conversation that comes with a checkpoint, in Jinja; "" where there is none.

    Raises:
        BundleError: it is no text, nor a list of templates by name.
    """
    if os.path.lexists(folder / CHAT_TEMPLATE):
        return text_of(folder / CHAT_TEMPLATE)
    there = os.path.lexists(folder / TOKENIZER_CONFIG)
    found = (read_json(folder / TOKENIZER_CONFIG) if there else {}).get("chat_template") or ""
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        found = next((one.get("template") for one in found if one.get("name") == "default"), "")
    if not isinstance(found, str):
        raise BundleError(
            f"{folder.name}/{TOKENIZER_CONFIG}: chat_template={found!r:.60} must be a text, or a list of objects that "
            "have a name and a template each"
        )
    return found


def has_chat(folder: Path) -> bool:
    """Tell whether a chat template comes with the model in a folder; False for one that cannot be read."""
    try:
        if (path := gguf_in(folder)) is not None:
            return bool(GgufSource.of(GgufFile.open(path, max_bytes=path.stat().st_size)).chat_template)
        values = read_json(folder / CONFIG)
        return bool(_chat_template(folder) if is_open_config(values) else values.get("chat"))
    except (OSError, BundleError):
        return False


MOST_NAMED = 3
LIBRARYS = "checkpoint of the `transformers` library"
OLD_NORMS = {".gamma": ".weight", ".beta": ".bias"}


def is_open_checkpoint(folder: Path) -> bool:
    """Return whether a folder is one of theirs, or has a GGUF file; False for a bundle and for what cannot be read.

    Raises:
        BundleError: it has several GGUF files.
    """
    if gguf_in(folder) is not None:
        return True
    try:
        return is_open_config(read_json(folder / CONFIG))
    except (OSError, BundleError):
        return False


def load_open(folder: Path, *, device: str | None, max_bytes: int, name: str | None = None) -> Bundle:
    """Read a checkpoint that the `transformers` library wrote, or a GGUF file.

    Args:
        folder: of the checkpoint; or the file, or a folder with that file alone.
        name: what to call the bundle; by default the folder's name.
        device, max_bytes: as in checkpoints.load.

    Raises:
        BundleError: what is not supported, missing or damaged, by name.
    """
    path = gguf_in(folder)
    gguf = None if path is None else GgufSource.of(GgufFile.open(path, max_bytes=max_bytes))
    settings = ConfigJson.read(folder) if gguf is None else gguf.settings
    family = family_of(settings)
    architecture = architecture_of(family, settings)
    settings.refuse_unsupported()
    kind = family.kinds[architecture]
    heads = family.heads.get(architecture, {})

    def rename(name: str) -> str:
        return _plain_name(name, family, heads)

    tensors = Tensors.look(folder, max_bytes=max_bytes, rename=rename) if gguf is None else gguf.tensors(rename)
    tensors = tensors.without_doubles(family.aliases)
    config = _configured(folder, settings, family, kind, tensors)
    origins = family.origins(config, kind)
    unread = _check_names(tensors, family, origins)
    tokenizer = read_tokenizer(folder, family) if gguf is None else gguf.tokenizer()
    target = read_target_tokenizer(folder, family) if gguf is None else None
    spoken = _chat_template(folder) if gguf is None else gguf.chat_template
    chat = _chat(folder, spoken, tokenizer) if spoken else None
    model = _filled(MODELS[kind], config, origins, tensors)
    tokenizer = _fitting(folder, tokenizer, config)
    target = None if target is None else _fitting(folder, target, config)
    labels = family.labels.get(architecture) or settings.labels()
    labels = labels or tuple(f"LABEL_{place}" for place in range(config.n_classes))
    model = model.to(best_device(device)).eval().requires_grad_(False)
    modules = read_modules(folder) if kind == "encoder" else SentenceModules()
    name = name or (path or folder).name.removesuffix(".gguf")
    card = _card(name, architecture, config, kind, unread, modules, LIBRARYS if gguf is None else "GGUF file")
    labels = labels if kind in LABELLED else ()
    source = (path or folder).resolve()
    stored = tensors.kinds()
    return Bundle(name, model, tokenizer, labels, card, source, stored=stored, target_tokenizer=target, chat=chat)


def _chat(folder: Path, source: str, tokenizer: Tokenizer) -> ChatTemplate:
    try:
        return ChatTemplate.of(source, tokenizer.named)
    except ValueError as error:
        raise BundleError(f"{folder.name}: {error}") from None


def _fitting(folder: Path, tokenizer: Tokenizer, config: ModelConfig) -> Tokenizer:
    if tokenizer.vocab_size > config.vocab_size:
        raise BundleError(
            f"{folder.name}: the tokenizer has {tokenizer.vocab_size} tokens; the model reads {config.vocab_size}"
        )
    tokenizer = tokenizer.widened(config.vocab_size)
    if config.starts_with_pad:
        tokenizer.bos_id = config.pad_id
    return tokenizer


def _plain_name(name: str, family: Family, heads: Mapping[str, str]) -> str:
    name = name.removeprefix(family.prefix)
    for theirs, known in heads.items():
        if name.startswith(theirs):
            name = known + name.removeprefix(theirs)
    for old, new in OLD_NORMS.items():
        if name.endswith(f"LayerNorm{old}"):
            name = name.removesuffix(old) + new
    return name


def _configured(folder: Path, settings: ConfigJson, family: Family, kind: str, tensors: Tensors) -> ModelConfig:
    values = family.configure(settings, kind, tensors.shapes)
    if kind == "encoder":
        values["pooling"] = read_pooling(folder)
    head = family.head_matrix
    if head in tensors.places and kind in ("bert", "gpt", "translation"):
        embedding = family.word_matrix
        values["tied_output"] &= embedding in tensors.places and tensors.same(head, embedding)
    elif not settings.flag("tie_word_embeddings", True):
        values["tied_output"] &= kind not in ("bert", "gpt", "translation")
    try:
        return ModelConfig(**values)
    except (TypeError, ValueError) as error:
        raise BundleError(f"{settings.where}: {error!s:.300}") from error


def _check_names(tensors: Tensors, family: Family, origins: Origins) -> list[str]:
    """Return the names of what is left unread, which no part of our model needs."""
    needed, there = names_of(origins.values()), tensors.places.keys()
    if missing := sorted(needed - there):
        raise BundleError(f"{tensors.where} lacks {_some(missing)}")
    extra = {name for name in there - needed - {family.head_matrix} if not family.buffers.fullmatch(name)}
    if strange := sorted(name for name in extra if name.startswith(family.backbone)):
        raise BundleError(f"{tensors.where} has {_some(strange)}, which our {family.model_type} does not compute with")
    return sorted(extra)


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:MOST_NAMED])} ({len(names)} tensors in all)"


def _filled(kind: type[nn.Module], config: ModelConfig, origins: Origins, tensors: Tensors) -> nn.Module:
    needed = needed_shapes(tensors.where, kind, config)
    for name, origin in origins.items():
        _check_shape(tensors, origin.name, origin.whole(needed[name]))
        if origin.added:
            _check_shape(tensors, origin.added, (1, *needed[name][1:]))
    with shapes_alone():  # nothing is allocated that is replaced anyway
        model = kind(config)
    held: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}  # a tied matrix is there more than once
    for module in model.modules():
        for own, parameter in module.named_parameters(recurse=False):
            held.setdefault(parameter, []).append((module, own))
    for name, empty in list(model.named_parameters()):
        origin: Origin = origins[name]
        added = tensors.read(origin.added) if origin.added else None
        filled = nn.Parameter(origin.take(tensors.read(origin.name), added).contiguous(), requires_grad=False)
        for module, own in held[empty]:
            setattr(module, own, filled)
    return model


def _check_shape(tensors: Tensors, name: str, expected: tuple[int, ...]) -> None:
    if (shape := tensors.places[name].shape) != expected:
        raise BundleError(f"{tensors.where}: {name} has shape {shape}; {CONFIG} calls for {expected}")


def _card(
    name: str,
    architecture: str,
    config: ModelConfig,
    kind: str,
    unread: list[str],
    modules: SentenceModules,
    source: str,
) -> str:
    of_pairs = architecture == PAIRS_ALONE
    notes: Mapping[str, Any] = {
        f"Read from a {source}: {architecture}, kind {kind}.": True,
        "It judges whether the second of two sentences follows the first; pages give it one.": of_pairs,
        "A text begins with its task, as in 'translate English to German: '.": architecture in T5.kinds,
        "It labels every token of a text.": kind == "tagger",
        "It finds the answer to a question in a passage.": kind == "answerer",
        "The sentence's vector is the mean over real tokens.": kind == "encoder" and config.pooling == "mean",
        "The sentence's vector is that of the first token.": kind == "encoder" and config.pooling == "cls",
        f"The library maps that vector once more, which is left out here: {', '.join(modules.left_out)}.": bool(
            modules.left_out
        ),
        f"The library reads at most {modules.max_seq_length} tokens of a text.": modules.max_seq_length is not None,
        f"Left unread: {', '.join(unread[:10])} ({len(unread)} tensors in all).": bool(unread),
        "Data, licence and quality: see where the checkpoint comes from.": True,
    }
    return f"# {name}\n\n" + "\n".join(note for note, said in notes.items() if said) + "\n"
