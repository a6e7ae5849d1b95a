"""Vocabularies: a checkpoint's tokenizer, made of its vocabulary and of what the files beside it say, as theirs is.

The class that tokenizer_config.json names (or config.json, or else the family's own) takes only the vocabulary from
tokenizer.json, or from the older files where that is all there is, and makes the rest anew from its defaults and flags;
PreTrainedTokenizerFast takes tokenizer.json as it stands.

Devlin et al. 2019 (vocab.txt); Radford et al. 2019 (vocab.json and merges.txt); Kudo 2018 (source.spm); the classes and
file formats of the `transformers` library, version 5.
"""

import base64
import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from transformer_core.open_checkpoints.family import Family
from transformer_core.open_checkpoints.sentencepiece import pipeline_of, read_pieces
from transformer_core.text import Tokenizer, TokenizerError
from transformer_core.text.loading import failing_clearly, parse
from transformer_core.untrusted.bundle_files import CONFIG, LARGEST_TEXT_FILE, TOKENIZER, BundleError, check_size
from transformer_core.untrusted.config_json import own_path, read_json
from transformer_core.untrusted.tokenizer_json import check_added

WORDS, NUMBERED, MERGES, TOKENIZER_CONFIG = "vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json"
ADDED, SPECIAL, PIECES = "added_tokens.json", "special_tokens_map.json", "source.spm"
TARGET_PIECES = "target.spm"


def read_tokenizer(folder: Path, family: Family) -> Tokenizer:
    """Read the tokenizer of a checkpoint.

    Raises:
        BundleError: no vocabulary that we can read, a damaged one, or a class that cannot be rebuilt.
    """
    settings = _Settings(folder, family)
    there = os.path.lexists(folder / TOKENIZER)
    where = f"{folder.name}/{TOKENIZER}" if there else folder.name
    try:
        whole = parse(_text(folder / TOKENIZER))[0] if there else None
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
    if not os.path.lexists(folder / TARGET_PIECES) or not _is_of_pieces(folder, family, _Settings(folder, family)):
        return None
    try:
        with failing_clearly("the vocabulary makes no tokenizer"):
            return Tokenizer.from_json(_sentence_pieces(folder, TARGET_PIECES).to_str())
    except ValueError as error:
        raise BundleError(f"{folder.name}/{TARGET_PIECES}: {error!s:.400}") from error


def _is_of_pieces(folder: Path, family: Family, settings: "_Settings") -> bool:
    """Tell whether SentencePiece models cut texts: MarianTokenizer passes over a tokenizer.json beside them."""
    there = PIECES in family.vocabulary and all(os.path.lexists(folder / name) for name in family.vocabulary)
    return there and (settings.class_name == OWN_CLASS["marian"] or not os.path.lexists(folder / TOKENIZER))


def _pipeline(
    folder: Path, family: Family, settings: "_Settings", whole: tokenizers.Tokenizer | None
) -> tuple[tokenizers.Tokenizer, dict[str, str]]:
    """Return the pipeline, and its named special tokens by our names of them."""
    made = MADE_BY.get(settings.class_name)
    if _is_of_pieces(folder, family, settings):
        return _sentence_pieces(folder), {}
    if whole is not None and made is None:
        listed = _listed(whole)
        return whole, settings.add_to(whole, settings.named({}), listed)
    if made is not None and whole is not None:
        return made.make(_Vocabulary.of(whole), settings, made)
    if made is not None and made.files and all(os.path.lexists(folder / name) for name in made.files):
        return made.make(made.read(folder), settings, made)
    files = made.files if made is not None else family.vocabulary if PIECES in family.vocabulary else ()
    older = f" or {' and '.join(files)}" if files else ""
    raise BundleError(f"{folder.name} has no vocabulary that can be read; supported: {TOKENIZER}{older}")


def _text(path: Path) -> str:
    place = own_path(path)
    check_size(place, LARGEST_TEXT_FILE)
    try:
        return place.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BundleError(f"{path.parent.name}/{path.name} must be UTF-8: byte {error.start} is not") from None


def _listed(whole: tokenizers.Tokenizer) -> dict[int, AddedToken]:
    return dict(whole.get_added_tokens_decoder())


@dataclass(frozen=True)
class _Vocabulary:
    """What a class takes from the files of a vocabulary.

    Args:
        where: the file, for messages.
        entries: ids by token, or (token, log probability) in the order of their ids.
        merges: of byte pairs, in order.
        charsmap: SentencePiece's table of how characters are written, where there is one.
        template: what tokenizer.json adds to a text, where it says so.
        listed: tokens that tokenizer.json adds to the vocabulary, by id.
    """

    where: str
    entries: Any
    merges: list[tuple[str, str]]
    charsmap: bytes | None = None
    template: processors.PostProcessor | None = None
    listed: Mapping[int, AddedToken] | None = None

    @classmethod
    def of(cls, whole: tokenizers.Tokenizer) -> "_Vocabulary":
        data = json.loads(whole.to_str())
        model, normalizer = data["model"], data["normalizer"] or {}
        steps = normalizer.get("normalizers", [normalizer])
        charsmap = next((step["precompiled_charsmap"] for step in steps if "precompiled_charsmap" in step), None)
        merges = [(first, second) for first, second in model.get("merges", [])]
        table = None if charsmap is None else base64.b64decode(charsmap)
        return cls(TOKENIZER, model["vocab"], merges, table, whole.post_processor, _listed(whole))

    def ids(self) -> dict[str, int]:
        if isinstance(self.entries, dict):
            return self.entries
        return {token: id_ for id_, (token, _) in enumerate(self.entries)}


NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


class _Settings:
    """What the files beside a vocabulary say: the class, its flags, its special and its added tokens."""

    def __init__(self, folder: Path, family: Family) -> None:
        self.folder, self.where = folder.name, f"{folder.name}/{TOKENIZER_CONFIG}"
        self.values: dict[str, Any] = _json_of(folder / TOKENIZER_CONFIG)
        config = _json_of(folder / CONFIG)
        named = (
            self.values.get("tokenizer_class")
            or config.get("tokenizer_class")
            or OWN_CLASS.get(family.model_type, AS_IT_STANDS[0])
        )
        self.class_name = str(named).removesuffix("Fast")
        if self.class_name not in (*MADE_BY, *AS_IT_STANDS):
            raise BundleError(
                f"{self.where}: tokenizer_class={named!r:.60} cannot be rebuilt here; supported: "
                f"{', '.join((*MADE_BY, 'PreTrainedTokenizerFast'))}"
            )
        if self.values.get("split_special_tokens") is True:
            raise BundleError(f"{self.where}: split_special_tokens=true is not supported")
        rows = config.get("vocab_size")
        self._rows = rows if isinstance(rows, int) else None
        extra = self.values.get("extra_special_tokens") or self.values.get("additional_special_tokens") or []
        older = "added_tokens_decoder" not in self.values
        beside, self._older = (_json_of(folder / name) if older else {} for name in (SPECIAL, ADDED))
        self.values |= {name: spec for name, spec in beside.items() if spec is not None}
        self._named_extra: dict[str, Any] = extra if isinstance(extra, dict) else {}
        self._extra: list[Any] = extra if isinstance(extra, list) else []
        more = beside.get("extra_special_tokens")
        self._extra += [spec for spec in more if spec not in self._extra] if isinstance(more, list) else []
        last = [] if self._extra else beside.get("additional_special_tokens")
        self._last: list[Any] = last if isinstance(last, list) else []

    def flag(self, name: str, default: bool | None) -> bool | None:
        value = self.values.get(name)
        return value if isinstance(value, bool) else default

    def named(self, defaults: Mapping[str, str]) -> dict[str, AddedToken]:
        """Return the special tokens that have a name, by it; a name that the files give to none has none."""
        found: dict[str, Any] = {}
        for name in dict.fromkeys((*NAMED, *self.values)):
            spec = self.values.get(name, defaults.get(name))
            if name in NAMED or (name.endswith("_token") and isinstance(spec, str | dict)):
                found[name] = spec
        found |= self._named_extra
        return {name: self._token(spec) for name, spec in found.items() if spec is not None}

    def _token(self, spec: Any) -> AddedToken:
        if isinstance(spec, str):
            return AddedToken(spec, special=True)
        if not isinstance(spec, dict) or not isinstance(spec.get("content"), str):
            raise BundleError(f"{self.where}: {spec!r:.60} must be a token: a text, or an object with its content")
        flags = {name: bool(spec[name]) for name in FLAGS if name in spec}
        special = flags.setdefault("special", "__type" not in spec)
        flags.setdefault("normalized", not special)
        return AddedToken(spec["content"], **flags)

    def _added(self, listed: Mapping[int, AddedToken]) -> dict[int, AddedToken]:
        """Return the tokens that are added to the vocabulary, by id."""
        try:
            if "added_tokens_decoder" in self.values:
                specs = self.values["added_tokens_decoder"]
                check_added([spec["content"] for spec in specs.values()], "added_tokens_decoder")
                return {int(id_): self._token({"special": False} | spec) for id_, spec in specs.items()}
            check_added(list(self._older), ADDED)
            specs = [*self._extra, *(self.values[name] for name in NAMED if self.values.get(name))]
            special = {self._token(spec).content for spec in specs}
            older = {
                int(id_): AddedToken(text, special=text in special, normalized=text not in special)
                for text, id_ in self._older.items()
            }
            return older | dict(listed)
        except BundleError:
            raise
        except TokenizerError as error:
            raise BundleError(f"{self.where}: {error}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BundleError(f"{self.where}: added tokens cannot be read: {error!s:.100}") from error

    def add_to(
        self,
        pipeline: tokenizers.Tokenizer,
        named: Mapping[str, AddedToken],
        listed: Mapping[int, AddedToken],
        needed: tuple[str, ...] = (),
        where: str = "",
    ) -> dict[str, str]:
        """Add what is not in the vocabulary and mark what is.

        Args:
            named: special tokens by name; one for which the model has no row is passed over.
            listed: the tokens that tokenizer.json adds.
            needed: names of those that must be there.

        Returns:
            The named tokens by our names of them.
        """
        added = self._added(listed)
        extra = [self._token(spec) for spec in (*self._extra, *self._last)]
        try:
            check_added([token.content for token in (*named.values(), *extra)], "special tokens")
        except TokenizerError as error:
            raise BundleError(f"{self.where}: {error}") from error
        names = {token.content for token in named.values()}
        for token in added.values():
            token.special |= token.content in names
        pipeline.add_tokens([token for _, token in sorted(added.items())])
        for id_, token in added.items():
            if pipeline.token_to_id(token.content) != id_:
                raise BundleError(f"{self.where}: {token.content!r:.60} cannot have id {id_}: the vocabulary differs")
        for name in needed:
            token = named[name].content if name in named else name
            if pipeline.token_to_id(token) is None:
                raise BundleError(f"{self.folder}/{where} lacks {token!r:.60}, which begins or ends every text")
        there, size, fresh = {token.content for token in added.values()}, pipeline.get_vocab_size(), []
        for token in (*named.values(), *extra):
            new = pipeline.token_to_id(token.content) is None
            if token.content in there or (new and self._rows is not None and size >= self._rows):
                continue
            token.special = True
            fresh.append(token)
            there.add(token.content)
            size += new
        pipeline.add_tokens(fresh)
        return {f"[{name.removesuffix('_token').upper()}]": named[name].content for name in NAMED if name in named}


def _json_of(path: Path) -> dict[str, Any]:
    return dict(read_json(path)) if os.path.lexists(path) else {}


def _words(folder: Path) -> _Vocabulary:
    lines = enumerate(io.StringIO(_text(folder / WORDS), newline=None).readlines())
    return _Vocabulary(WORDS, {line.rstrip("\n"): number for number, line in lines}, [])


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


def _pairs(folder: Path) -> _Vocabulary:
    return _Vocabulary(NUMBERED, _numbered(folder), _merges(folder))


@dataclass(frozen=True)
class _Class:
    """How a class of theirs makes its pipeline.

    Args:
        make: from the vocabulary and the settings.
        tokens: its special tokens, by name, where the files name no others.
        files, read: the older files of its vocabulary, and what reads them.
    """

    make: Callable[[_Vocabulary, _Settings, "_Class"], tuple[tokenizers.Tokenizer, dict[str, str]]]
    tokens: Mapping[str, str]
    files: tuple[str, ...] = ()
    read: Callable[[Path], _Vocabulary] = _words


Made = tuple[tokenizers.Tokenizer, dict[str, str]]


def _word_pieces(vocabulary: _Vocabulary, settings: _Settings, its: _Class) -> Made:
    named = settings.named(its.tokens)
    unknown = named["unk_token"].content if "unk_token" in named else "[UNK]"
    pipeline = tokenizers.Tokenizer(models.WordPiece(vocabulary.ids(), unk_token=unknown))
    pipeline.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(settings.flag("tokenize_chinese_chars", True)),
        strip_accents=settings.flag("strip_accents", None),
        lowercase=bool(settings.flag("do_lower_case", True)),
    )
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.decoder = decoders.WordPiece(prefix="##")
    ours = settings.add_to(pipeline, named, vocabulary.listed or {}, ("cls_token", "sep_token"), vocabulary.where)
    cls, sep = (_with_id(pipeline, named[name].content) for name in ("cls_token", "sep_token"))
    pipeline.post_processor = processors.TemplateProcessing(
        single=[f"{cls[0]}:0", "$A:0", f"{sep[0]}:0"],
        pair=[f"{cls[0]}:0", "$A:0", f"{sep[0]}:0", "$B:1", f"{sep[0]}:1"],
        special_tokens=[cls, sep],
    )
    return pipeline, ours


def _with_id(pipeline: tokenizers.Tokenizer, token: str) -> tuple[str, int]:
    return token, cast("int", pipeline.token_to_id(token))  # which is there: add_to needs it


def _byte_pipeline(vocabulary: _Vocabulary, *, spaced: bool) -> tokenizers.Tokenizer:
    pipeline = tokenizers.Tokenizer(models.BPE(vocabulary.ids(), vocabulary.merges))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    pipeline.decoder = decoders.ByteLevel()
    return pipeline


def _gpt2_pairs(vocabulary: _Vocabulary, settings: _Settings, its: _Class) -> Made:
    pipeline = _byte_pipeline(vocabulary, spaced=bool(settings.flag("add_prefix_space", False)))
    named = settings.named(its.tokens)
    older = vocabulary.listed is None
    bos = ["bos_token"] if older and settings.flag("add_bos_token", False) and "bos_token" in named else []
    eos = ["eos_token"] if older and settings.flag("add_eos_token", False) and "eos_token" in named else []
    ours = settings.add_to(pipeline, named, vocabulary.listed or {}, (*bos, *eos), vocabulary.where)
    pipeline.post_processor = vocabulary.template or processors.ByteLevel(trim_offsets=False)
    if bos or eos:
        before, after = ([named[name].content for name in names] for names in (bos, eos))
        first, second = (
            [*(f"{t}:{n}" for t in before), f"${'AB'[n]}:{n}", *(f"{t}:{n}" for t in after)] for n in (0, 1)
        )
        pipeline.post_processor = processors.TemplateProcessing(
            single=first, pair=first + second, special_tokens=[_with_id(pipeline, token) for token in {*before, *after}]
        )
    return pipeline, ours


def _roberta_pairs(vocabulary: _Vocabulary, settings: _Settings, its: _Class) -> Made:
    spaced, trimmed = bool(settings.flag("add_prefix_space", False)), bool(settings.flag("trim_offsets", True))
    pipeline = _byte_pipeline(vocabulary, spaced=spaced)
    named = settings.named(its.tokens)
    ours = settings.add_to(pipeline, named, vocabulary.listed or {}, ("cls_token", "sep_token"), vocabulary.where)
    cls, sep = (_with_id(pipeline, named[name].content) for name in ("cls_token", "sep_token"))
    pipeline.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=trimmed, add_prefix_space=spaced)
    return pipeline, ours


UNKNOWN_OF_XLM_ROBERTA = 3  # whatever its vocabulary says


def _unigrams(vocabulary: _Vocabulary, settings: _Settings, its: _Class) -> Made:
    if isinstance(vocabulary.entries, dict):
        raise BundleError(f"{settings.folder}/{vocabulary.where}: model.vocab must be a Unigram's, with probabilities")
    entries = [(token, score) for token, score in vocabulary.entries]
    pipeline = tokenizers.Tokenizer(models.Unigram(entries, UNKNOWN_OF_XLM_ROBERTA, False))
    if vocabulary.charsmap is not None:
        pipeline.normalizer = normalizers.Precompiled(vocabulary.charsmap)
    scheme = "always" if settings.flag("add_prefix_space", True) else "never"
    pipeline.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme)]
    )
    pipeline.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    named = settings.named(its.tokens)
    ours = settings.add_to(pipeline, named, vocabulary.listed or {}, ("bos_token", "eos_token"), vocabulary.where)
    bos, eos = (_with_id(pipeline, named[name].content) for name in ("bos_token", "eos_token"))
    pipeline.post_processor = processors.TemplateProcessing(
        single=[bos[0], "$A", eos[0]], pair=[bos[0], "$A", eos[0], eos[0], "$B", eos[0]], special_tokens=[bos, eos]
    )
    return pipeline, ours


def _sentence_pieces(folder: Path, file: str = PIECES) -> tokenizers.Tokenizer:
    place = own_path(folder / file)
    check_size(place, LARGEST_TEXT_FILE)
    pieces = read_pieces(place.read_bytes(), f"{folder.name}/{file}")
    return pipeline_of(pieces, _numbered(folder), f"{folder.name}/{NUMBERED}")


OF_BERT = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}
OF_GPT2 = {f"{name}_token": "<|endoftext|>" for name in ("unk", "bos", "eos")}
OF_ROBERTA = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>", "unk_token": "<unk>"}
OF_ROBERTA |= {"pad_token": "<pad>", "mask_token": "<mask>"}
LIKE_BERT = ("Bert", "DistilBert", "Electra", "MobileBert", "LayoutLM", "SqueezeBert")
MADE_BY = {f"{name}Tokenizer": _Class(_word_pieces, OF_BERT, (WORDS,)) for name in LIKE_BERT}
MADE_BY |= {
    f"{name}Tokenizer": _Class(_roberta_pairs, OF_ROBERTA, (NUMBERED, MERGES), _pairs)
    for name in ("Roberta", "Bart", "Longformer")
}
MADE_BY["GPT2Tokenizer"] = _Class(_gpt2_pairs, OF_GPT2, (NUMBERED, MERGES), _pairs)
MADE_BY["XLMRobertaTokenizer"] = _Class(_unigrams, OF_ROBERTA)
AS_IT_STANDS = ("PreTrainedTokenizer", "TokenizersBackend")
AS_IT_STANDS += tuple(f"{name}Tokenizer" for name in ("Marian", "Llama", "CodeLlama", "Gemma", "Qwen2", "GPTNeoX"))
OWN_CLASS = {
    "bert": "BertTokenizer",
    "distilbert": "BertTokenizer",
    "electra": "BertTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "gpt2": "GPT2Tokenizer",
    "marian": "MarianTokenizer",
}


def vocabulary_file(tokenizer: Tokenizer) -> str:
    """Return what tokenizer_config.json must say of a tokenizer.json for their library to read it."""
    named = {"pad": tokenizer.pad_id, "unk": tokenizer.unk_id, "cls": tokenizer.cls_id, "sep": tokenizer.sep_id}
    named |= {"mask": tokenizer.mask_id, "bos": tokenizer.bos_id, "eos": tokenizer.eos_id}
    tokens = {f"{name}_token": tokenizer.token_of(id_) for name, id_ in named.items() if id_ is not None}
    return json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **tokens}, ensure_ascii=False, indent=2) + "\n"
