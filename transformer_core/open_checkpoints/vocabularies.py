"""Vocabularies: a checkpoint's tokenizer.json, or the older files that hold the same where that is all there is.

Devlin et al. 2019 (vocab.txt); Radford et al. 2019 (vocab.json and merges.txt); Kudo 2018 (source.spm, target.spm).
"""

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from transformer_core.bundle_files import LARGEST_TEXT_FILE, TOKENIZER, BundleError, check_size
from transformer_core.open_checkpoints.config_json import own_path, read_json
from transformer_core.open_checkpoints.family import Family
from transformer_core.open_checkpoints.sentencepiece import pipeline_of, read_pieces
from transformer_core.text import Tokenizer, TokenizerError
from transformer_core.text.components import check_added
from transformer_core.text.loading import failing_clearly

WORDS, NUMBERED, MERGES, TOKENIZER_CONFIG = "vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json"
SPECIAL_TOKENS, ADDED_TOKENS = "special_tokens_map.json", "added_tokens.json"
PIECES, TARGET_PIECES = "source.spm", "target.spm"
FOR = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")


def read_tokenizer(folder: Path, family: Family) -> Tokenizer:
    """Read the tokenizer of a checkpoint.

    Raises:
        BundleError: no vocabulary that we can read, or a damaged one.
    """
    if os.path.lexists(folder / TOKENIZER):
        with _in_words(f"{folder.name}/{TOKENIZER}"):
            return Tokenizer.from_json(_as_class(_text(folder / TOKENIZER), _TokenizerConfig(folder), family))
    if family.vocabulary and all(os.path.lexists(folder / name) for name in family.vocabulary):
        with _in_words(folder.name):
            with failing_clearly("the vocabulary makes no tokenizer"):
                pipeline = READERS[family.vocabulary](folder, family)
            return Tokenizer.from_json(pipeline.to_str())
    older = f" or {' and '.join(family.vocabulary)}" if family.vocabulary else ""
    raise BundleError(f"{folder.name} has no vocabulary that can be read; supported: {TOKENIZER}{older}")


USUAL = {"bert": "Bert", "distilbert": "Bert", "roberta": "Roberta", "gpt2": "GPT2"}  # class of a model_type
SLOW = ("BertJapanese", "Bertweet", "Phobert", "Flaubert", "XLM", "CTRL", "Herbert")  # cut by code of their own
KINDS = {"Bert": "WordPiece", "DistilBert": "WordPiece", "Electra": "WordPiece", "Roberta": "BPE", "GPT2": "BPE"}


def _as_class(text: str, settings: "_TokenizerConfig", family: Family) -> str:
    """Return a tokenizer.json as the library's class makes it anew: its vocabulary, and what the class does with it.

    Where no class is named, it is the model's; where that is none of KINDS, or has another kind of vocabulary, the
    file is taken as it stands.

    Raises:
        BundleError: the class cuts texts by code of its own, or the file lacks what begins and ends its texts.
    """
    named = settings.values.get("tokenizer_class")
    name = str(named or USUAL.get(family.model_type, "")).removesuffix("Fast").removesuffix("Tokenizer")
    if name in SLOW:
        raise BundleError(f"{settings.where}: tokenizer_class={named!r:.60} is not supported: it cuts texts by code")
    try:
        data = json.loads(text)
        model, vocabulary = data["model"], data["model"]["vocab"]
        added = [one for one in data.get("added_tokens") or [] if isinstance(one["content"] + str(one["id"]), str)]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return text  # which its reader takes, or refuses in words
    kind = model.get("type") or ("BPE" if "merges" in model else "WordPiece")
    if KINDS.get(name) == kind and isinstance(vocabulary, dict):
        ids = vocabulary | {one["content"]: one["id"] for one in added}
        with failing_clearly("the vocabulary makes no tokenizer"):
            donor, model_too = (_words_of if kind == "WordPiece" else _bytes_of)(name, settings, ids)
        made = json.loads(donor.to_str())
        parts = ("normalizer", "pre_tokenizer", "decoder", "post_processor")
        data |= {part: made[part] for part in parts if part != "post_processor" or made[part]}
        data["model"] = model | model_too
        data["added_tokens"] = _with_added(added, settings, ids)
    return json.dumps(data)


def _with_added(added: list[dict[str, Any]], settings: "_TokenizerConfig", ids: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a file's added tokens with those that stand beside it, in the order of their ids."""
    known = {one.get("content") for one in added}
    more = {token.content: (id_, token) for id_, token in settings.added().items()}
    for token in settings.specials().values():
        if token in ids and token not in more:
            more[token] = (ids[token], AddedToken(token, special=True, normalized=False))
    found = [
        {"id": id_, "content": content, "special": token.special, "normalized": token.normalized}
        | {name: getattr(token, name) for name in ("single_word", "lstrip", "rstrip")}
        for content, (id_, token) in more.items()
        if content not in known
    ]
    return sorted([*added, *found], key=lambda one: one.get("id", 0))


def _words_of(_: str, settings: "_TokenizerConfig", ids: dict[str, Any]) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """Return what BERT's class does to a text, and what it makes of the vocabulary's model."""
    unknown = settings.token("unk_token", "[UNK]")
    tokens = {token: ids[token] for token in ids if isinstance(ids[token], int)}
    donor = tokenizers.Tokenizer(models.WordPiece(tokens, unk_token=unknown))
    _read_as_words(donor, settings, settings.where.replace(TOKENIZER_CONFIG, TOKENIZER))
    return donor, {"unk_token": unknown, "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}


def _bytes_of(
    name: str, settings: "_TokenizerConfig", ids: dict[str, Any]
) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """Return what the classes of RoBERTa and GPT-2 do to a text, and what they make of the vocabulary's model."""
    spaced = bool(settings.flag("add_prefix_space", False))
    donor = tokenizers.Tokenizer(models.BPE())
    donor.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    donor.decoder = decoders.ByteLevel()
    if name == "Roberta":
        tokens = (settings.token("sep_token", "</s>"), settings.token("cls_token", "<s>"))
        if not all(isinstance(ids.get(token), int) for token in tokens):
            raise BundleError(f"{settings.where}: the vocabulary lacks {' or '.join(tokens)!s:.60}")
        sep, cls = ((token, ids[token]) for token in tokens)
        trim = bool(settings.flag("trim_offsets", True))
        donor.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=trim, add_prefix_space=spaced)
    return donor, {"continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False, "unk_token": None}


def name_specials(folder: Path, tokenizer: Tokenizer) -> None:
    """Let a tokenizer know what its special tokens are for, where a folder says it by other names than the usual."""
    for name, token in _TokenizerConfig(folder).specials().items():
        if (id_ := tokenizer.id_of(token)) is not None and tokenizer.is_special(id_):
            setattr(tokenizer, f"{name}_id", id_)


def read_target_tokenizer(folder: Path, family: Family) -> Tokenizer | None:
    """Read what cuts the target's texts, None where a checkpoint has one tokenizer for both.

    Raises:
        BundleError: its pieces are damaged, or the ids for them are missing.
    """
    if PIECES not in family.vocabulary or not os.path.lexists(folder / TARGET_PIECES):
        return None
    with _in_words(f"{folder.name}/{TARGET_PIECES}"), failing_clearly("the vocabulary makes no tokenizer"):
        return Tokenizer.from_json(_sentence_pieces(folder, family, TARGET_PIECES).to_str())


@contextmanager
def _in_words(where: str) -> Iterator[None]:
    try:
        yield
    except BundleError:
        raise
    except ValueError as error:
        raise BundleError(f"{where}: {error!s:.400}") from error


def _text(path: Path) -> str:
    place = own_path(path)
    check_size(place, LARGEST_TEXT_FILE)
    try:
        return place.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BundleError(f"{path.parent.name}/{path.name} must be UTF-8: byte {error.start} is not") from None


class _TokenizerConfig:
    """What is said beside a vocabulary of its special and added tokens, and of the text before it is cut.

    tokenizer_config.json says it; older folders have special_tokens_map.json and added_tokens.json, too.
    """

    def __init__(self, folder: Path) -> None:
        def read(name: str) -> dict[str, Any]:
            return read_json(folder / name) if os.path.lexists(folder / name) else {}

        self.values: dict[str, Any] = read(SPECIAL_TOKENS) | read(TOKENIZER_CONFIG)
        self._added_ids = read(ADDED_TOKENS)
        self.where = f"{folder.name}/{TOKENIZER_CONFIG}"

    def specials(self) -> dict[str, str]:
        """Return the special tokens that are named, by what they are for: pad, unk, cls, sep, mask, bos, eos."""
        named = {name: self.token(f"{name}_token", "") for name in FOR}
        return {name: token for name, token in named.items() if token}

    def token(self, name: str, default: str) -> str:
        value = self.values.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        return value if isinstance(value, str) and value else default

    def takes_blank(self, token: str) -> bool:
        """Return whether the blank before a special token is its own, as RoBERTa's mask has it where it says so."""
        specs = (value for value in self.values.values() if isinstance(value, dict))
        return any(spec.get("content") == token and spec.get("lstrip") is True for spec in specs)

    def flag(self, name: str, default: bool | None) -> bool | None:
        value = self.values.get(name)
        return value if isinstance(value, bool) else default

    def added(self) -> dict[int, AddedToken]:
        """Return the tokens that were added to the vocabulary, by id."""
        listed = self.values.get("added_tokens_decoder", {})
        try:
            decoded = {spec["content"] for spec in listed.values()}
            more = {str(id_): {"content": token} for token, id_ in self._added_ids.items() if token not in decoded}
            listed = more | listed
            check_added([spec["content"] for spec in listed.values()], "added_tokens_decoder")
            return {
                int(id_): AddedToken(
                    spec["content"],
                    **{name: bool(spec.get(name)) for name in ("single_word", "lstrip", "rstrip", "special")},
                    normalized=bool(spec.get("normalized", not spec.get("special"))),
                )
                for id_, spec in sorted(listed.items(), key=lambda item: int(item[0]))
            }
        except TokenizerError as error:
            raise BundleError(f"{self.where}: {error}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BundleError(f"{self.where}: added_tokens_decoder cannot be read: {error!s:.100}") from error


def _add(pipeline: tokenizers.Tokenizer, settings: _TokenizerConfig, special: list[AddedToken]) -> None:
    """Mark the special tokens that the vocabulary has, and add those that tokenizer_config.json lists."""
    pipeline.add_special_tokens([token for token in special if pipeline.token_to_id(token.content) is not None])
    for id_, token in settings.added().items():
        (pipeline.add_special_tokens if token.special else pipeline.add_tokens)([token])
        if pipeline.token_to_id(token.content) != id_:
            raise BundleError(f"{settings.where}: {token.content!r:.60} cannot have id {id_}: the vocabulary differs")


def _needed(pipeline: tokenizers.Tokenizer, token: str, where: str) -> tuple[str, int]:
    id_ = pipeline.token_to_id(token)
    if id_ is None:
        raise BundleError(f"{where} lacks {token!r:.60}, which begins or ends every text")
    return token, id_


def _read_as_words(pipeline: tokenizers.Tokenizer, settings: _TokenizerConfig, where: str) -> None:
    """Let a pipeline read texts as BERT's class does, by its flags and defaults."""
    pipeline.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(settings.flag("tokenize_chinese_chars", True)),
        strip_accents=settings.flag("strip_accents", None),
        lowercase=bool(settings.flag("do_lower_case", True)),
    )
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.decoder = decoders.WordPiece(prefix="##")
    tokens = (settings.token(f"{name}_token", f"[{name.upper()}]") for name in ("cls", "sep"))
    cls, sep = (_needed(pipeline, token, where) for token in tokens)
    pipeline.post_processor = processors.TemplateProcessing(
        single=f"{cls[0]}:0 $A:0 {sep[0]}:0",
        pair=f"{cls[0]}:0 $A:0 {sep[0]}:0 $B:1 {sep[0]}:1",
        special_tokens=[cls, sep],
    )


def _word_pieces(folder: Path, family: Family) -> tokenizers.Tokenizer:
    settings = _TokenizerConfig(folder)
    lines = io.StringIO(_text(folder / WORDS), newline=None).readlines()
    vocabulary = {line.rstrip("\n"): number for number, line in enumerate(lines)}
    unknown = settings.token("unk_token", "[UNK]")
    pipeline = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "cls", "sep", "mask")}
    tokens = {name: settings.token(name, default) for name, default in named.items()}
    _add(pipeline, settings, [AddedToken(token, special=True) for token in (unknown, *tokens.values())])
    _read_as_words(pipeline, settings, f"{folder.name}/{WORDS}")
    return pipeline


def _numbered(folder: Path) -> dict[str, int]:
    values = read_json(folder / NUMBERED)
    if not all(isinstance(id_, int) and not isinstance(id_, bool) and id_ >= 0 for id_ in values.values()):
        raise BundleError(f"{folder.name}/{NUMBERED} must give each token a whole number")
    return values


def _merges(folder: Path) -> list[tuple[str, str]]:
    lines = _text(folder / MERGES).split("\n")
    pairs = [tuple(line.rstrip("\r").split(" ")) for line in lines[lines[0].startswith("#version") :] if line.strip()]
    for pair in pairs:
        if len(pair) != 2:
            raise BundleError(f"{folder.name}/{MERGES}: {' '.join(pair)!r:.60} must be two tokens and a blank between")
    return pairs  # type: ignore[return-value]


def _byte_pairs(folder: Path, family: Family) -> tokenizers.Tokenizer:
    settings = _TokenizerConfig(folder)
    pipeline = tokenizers.Tokenizer(models.BPE(_numbered(folder), _merges(folder)))
    spaced = bool(settings.flag("add_prefix_space", False))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    pipeline.decoder = decoders.ByteLevel()
    if family.model_type == "gpt2":
        end = "<|endoftext|>"
        tokens = [settings.token(f"{name}_token", end) for name in ("unk", "bos", "eos", "pad")]
        _add(pipeline, settings, [AddedToken(token, special=True) for token in dict.fromkeys(tokens)])
        pipeline.post_processor = processors.ByteLevel(trim_offsets=False)
        if settings.flag("add_bos_token", False):  # where there is a tokenizer.json, that says it
            start = _needed(pipeline, settings.token("bos_token", end), f"{folder.name}/{NUMBERED}")
            pipeline.post_processor = processors.TemplateProcessing(
                single=f"{start[0]}:0 $A:0", pair=f"{start[0]}:0 $A:0 {start[0]}:1 $B:1", special_tokens=[start]
            )
        return pipeline
    named = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "cls": "<s>", "sep": "</s>"}
    tokens = {name: settings.token(f"{name}_token", default) for name, default in named.items()}
    special = dict.fromkeys([*tokens.values(), settings.token("mask_token", "<mask>")])
    _add(pipeline, settings, [AddedToken(token, special=True, lstrip=settings.takes_blank(token)) for token in special])
    cls, sep = (_needed(pipeline, tokens[name], f"{folder.name}/{NUMBERED}") for name in ("cls", "sep"))
    pipeline.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=spaced)
    return pipeline


def _sentence_pieces(folder: Path, family: Family, file: str = PIECES) -> tokenizers.Tokenizer:
    place = own_path(folder / file)
    check_size(place, LARGEST_TEXT_FILE)
    pieces = read_pieces(place.read_bytes(), f"{folder.name}/{file}")
    return pipeline_of(pieces, _numbered(folder), f"{folder.name}/{NUMBERED}")


READERS = {(WORDS,): _word_pieces, (NUMBERED, MERGES): _byte_pairs, (PIECES, NUMBERED): _sentence_pieces}


def vocabulary_file(tokenizer: Tokenizer) -> str:
    """Return what tokenizer_config.json must say of a tokenizer.json for their library to read it."""
    named = {"pad": tokenizer.pad_id, "unk": tokenizer.unk_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    named |= {"mask": tokenizer.mask_id, "bos": tokenizer.bos_id, "eos": tokenizer.eos_id}
    tokens = {f"{name}_token": tokenizer.token_of(id_) for name, id_ in named.items() if id_ is not None}
    return json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **tokens}, ensure_ascii=False, indent=2) + "\n"
