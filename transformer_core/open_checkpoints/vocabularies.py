"""Vocabularies: a checkpoint's tokenizer, made of its vocabulary and of what the files beside it say, as theirs is.

The class that tokenizer_config.json names (or config.json, or else the family's own) takes only the vocabulary from
tokenizer.json, or from the older files where that is all there is, and makes the rest anew from its defaults and flags;
PreTrainedTokenizerFast takes tokenizer.json as it stands.

Kudo 2018 (source.spm); the file formats of the `transformers` library, version 5.
"""

import json
import os
from pathlib import Path

import tokenizers

from transformer_core.open_checkpoints.family import Family
from transformer_core.open_checkpoints.sentencepiece import pipeline_of, read_pieces
from transformer_core.open_checkpoints.tokenizer_classes import (
    MADE_BY,
    NUMBERED,
    OWN_CLASS,
    Settings,
    Vocabulary,
    listed_in,
    numbered,
    text_of,
)
from transformer_core.text import Tokenizer
from transformer_core.text.loading import failing_clearly, parse
from transformer_core.untrusted.bundle_files import LARGEST_TEXT_FILE, TOKENIZER, BundleError, check_size
from transformer_core.untrusted.config_json import own_path

PIECES, TARGET_PIECES = "source.spm", "target.spm"


def read_tokenizer(folder: Path, family: Family) -> Tokenizer:
    """Read the tokenizer of a checkpoint.

    Raises:
        BundleError: no vocabulary that we can read, a damaged one, or a class that cannot be rebuilt.
    """
    settings = Settings(folder, family)
    there = os.path.lexists(folder / TOKENIZER)
    where = f"{folder.name}/{TOKENIZER}" if there else folder.name
    try:
        whole = parse(text_of(folder / TOKENIZER))[0] if there else None
        with failing_clearly("the vocabulary makes no tokenizer"):
            pipeline, tokens = _pipeline(folder, family, settings, whole)
        ids = {name: token for name, token in tokens.items() if pipeline.token_to_id(token) is not None}
        return Tokenizer.from_json(pipeline.to_str(), ids)
    except BundleError:
        raise
    except ValueError as error:
        if isinstance(error.__cause__, BundleError):
            raise error.__cause__ from None
        raise BundleError(f"{where}: {error!s:.400}") from error


def read_target_tokenizer(folder: Path, family: Family) -> Tokenizer | None:
    """Read what cuts the target's texts, None where a checkpoint has one tokenizer for both, as a tokenizer.json is.

    Raises:
        BundleError: its pieces are damaged, or the ids for them are missing.
    """
    if not os.path.lexists(folder / TARGET_PIECES) or not _is_of_pieces(folder, family, Settings(folder, family)):
        return None
    try:
        with failing_clearly("the vocabulary makes no tokenizer"):
            return Tokenizer.from_json(_sentence_pieces(folder, TARGET_PIECES).to_str())
    except ValueError as error:
        raise BundleError(f"{folder.name}/{TARGET_PIECES}: {error!s:.400}") from error


def _is_of_pieces(folder: Path, family: Family, settings: Settings) -> bool:
    """Tell whether SentencePiece models cut texts: MarianTokenizer passes over a tokenizer.json beside them."""
    there = PIECES in family.vocabulary and all(os.path.lexists(folder / name) for name in family.vocabulary)
    return there and (settings.class_name == OWN_CLASS["marian"] or not os.path.lexists(folder / TOKENIZER))


def _pipeline(
    folder: Path, family: Family, settings: Settings, whole: tokenizers.Tokenizer | None
) -> tuple[tokenizers.Tokenizer, dict[str, str]]:
    """Return the pipeline, and its named special tokens by our names of them."""
    made = MADE_BY.get(settings.class_name)
    if _is_of_pieces(folder, family, settings):
        return _sentence_pieces(folder), {}
    if whole is not None and made is None:
        listed = listed_in(whole)
        return whole, settings.add_to(whole, settings.named({}), listed)
    if made is not None and whole is not None:
        return made.make(Vocabulary.of(whole), settings, made)
    if made is not None and made.files and all(os.path.lexists(folder / name) for name in made.files):
        return made.make(made.read(folder), settings, made)
    files = made.files if made is not None else family.vocabulary if PIECES in family.vocabulary else ()
    older = f" or {' and '.join(files)}" if files else ""
    raise BundleError(f"{folder.name} has no vocabulary that can be read; supported: {TOKENIZER}{older}")


def _sentence_pieces(folder: Path, file: str = PIECES) -> tokenizers.Tokenizer:
    place = own_path(folder / file)
    check_size(place, LARGEST_TEXT_FILE)
    pieces = read_pieces(place.read_bytes(), f"{folder.name}/{file}")
    return pipeline_of(pieces, numbered(folder), f"{folder.name}/{NUMBERED}")


def vocabulary_file(tokenizer: Tokenizer, more: dict[str, str]) -> str:
    """Return what tokenizer_config.json must say of a tokenizer.json for their library to read it, and more entries."""
    named = {"pad": tokenizer.pad_id, "unk": tokenizer.unk_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    named |= {"mask": tokenizer.mask_id, "bos": tokenizer.bos_id, "eos": tokenizer.eos_id}
    tokens = {f"{name}_token": tokenizer.token_of(id_) for name, id_ in named.items() if id_ is not None} | more
    return json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **tokens}, ensure_ascii=False, indent=2) + "\n"
