"""Tokenizer classes of the `transformers` library, version 5: what each takes from a vocabulary and from its settings.

Devlin et al. 2019 (WordPiece); Radford et al. 2019 (pairs of bytes); Kudo 2018 (unigrams).
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
from transformer_core.text import TokenizerError
from transformer_core.untrusted.bundle_files import CONFIG, LARGEST_TEXT_FILE, TOKENIZER, BundleError, check_size
from transformer_core.untrusted.config_json import own_path, read_json
from transformer_core.untrusted.tokenizer_json import MOST_ADDED, check_added

WORDS, NUMBERED, MERGES, TOKENIZER_CONFIG = "vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json"
ADDED, SPECIAL = "added_tokens.json", "special_tokens_map.json"


def text_of(path: Path) -> str:
    """Return a text file of bounded size; BundleError where it is no UTF-8."""
    place = own_path(path)
    check_size(place, LARGEST_TEXT_FILE)
    try:
        return place.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BundleError(f"{path.parent.name}/{path.name} must be UTF-8: byte {error.start} is not") from None


def listed_in(whole: tokenizers.Tokenizer) -> dict[int, AddedToken]:
    """Return the tokens that a tokenizer.json adds to its vocabulary, by id."""
    return dict(whole.get_added_tokens_decoder())


@dataclass(frozen=True)
class Vocabulary:
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
    def of(cls, whole: tokenizers.Tokenizer) -> "Vocabulary":
        """Return what a tokenizer.json holds."""
        data = json.loads(whole.to_str())
        model, normalizer = data["model"], data["normalizer"] or {}
        steps = normalizer.get("normalizers", [normalizer])
        charsmap = next((step["precompiled_charsmap"] for step in steps if "precompiled_charsmap" in step), None)
        merges = [(first, second) for first, second in model.get("merges", [])]
        table = None if charsmap is None else base64.b64decode(charsmap)
        return cls(TOKENIZER, model["vocab"], merges, table, whole.post_processor, listed_in(whole))

    def ids(self) -> dict[str, int]:
        """Return the entries' ids."""
        if isinstance(self.entries, dict):
            return self.entries
        return {token: id_ for id_, (token, _) in enumerate(self.entries)}


NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


class Settings:
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
        """Return an entry that is true or false, else the default."""
        value = self.values.get(name)
        return value if isinstance(value, bool) else default

    def add_sentinels(self) -> None:
        """Take T5's own extra tokens, which stand for hidden spans, where the files list none (Raffel et al. 2020)."""
        count = self.values.get("extra_ids", 100)
        if not isinstance(count, int) or not 0 <= count <= MOST_ADDED:
            raise BundleError(f"{self.where}: extra_ids={count!r:.60} must be a whole number from 0 to {MOST_ADDED}")
        if not any("<extra_id_" in self._token(spec).content for spec in self._extra):
            self._extra += [f"<extra_id_{place}>" for place in range(count)]

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


def _words(folder: Path) -> Vocabulary:
    lines = enumerate(io.StringIO(text_of(folder / WORDS), newline=None).readlines())
    return Vocabulary(WORDS, {line.rstrip("\n"): number for number, line in lines}, [])


def numbered(folder: Path) -> dict[str, int]:
    """Return the ids in a vocab.json."""
    values = read_json(folder / NUMBERED)
    if not all(isinstance(id_, int) and not isinstance(id_, bool) and id_ >= 0 for id_ in values.values()):
        raise BundleError(f"{folder.name}/{NUMBERED} must give each token a whole number")
    return values


def _merges(folder: Path) -> list[tuple[str, str]]:
    lines = text_of(folder / MERGES).split("\n")
    pairs = [tuple(line.rstrip("\r").split(" ")) for line in lines[lines[0].startswith("#version") :] if line.strip()]
    for pair in pairs:
        if len(pair) != 2:
            raise BundleError(f"{folder.name}/{MERGES}: {' '.join(pair)!r:.60} must be two tokens and a blank between")
    return pairs  # type: ignore[return-value]


def _pairs(folder: Path) -> Vocabulary:
    return Vocabulary(NUMBERED, numbered(folder), _merges(folder))


@dataclass(frozen=True)
class TokenizerClass:
    """How a class of theirs makes its pipeline.

    Args:
        make: from the vocabulary and the settings.
        tokens: its special tokens, by name, where the files name no others.
        files, read: the older files of its vocabulary, and what reads them.
    """

    make: Callable[[Vocabulary, Settings, "TokenizerClass"], tuple[tokenizers.Tokenizer, dict[str, str]]]
    tokens: Mapping[str, str]
    files: tuple[str, ...] = ()
    read: Callable[[Path], Vocabulary] = _words


Made = tuple[tokenizers.Tokenizer, dict[str, str]]


def _between_cls_and_sep(
    pipeline: tokenizers.Tokenizer, vocabulary: Vocabulary, settings: Settings, named: Mapping[str, AddedToken]
) -> dict[str, str]:
    """Let every text begin with [CLS] and end with [SEP], and the second of two count as segment 1."""
    ours = settings.add_to(pipeline, named, vocabulary.listed or {}, ("cls_token", "sep_token"), vocabulary.where)
    cls, sep = (_with_id(pipeline, named[name].content) for name in ("cls_token", "sep_token"))
    pipeline.post_processor = processors.TemplateProcessing(
        single=[f"{cls[0]}:0", "$A:0", f"{sep[0]}:0"],
        pair=[f"{cls[0]}:0", "$A:0", f"{sep[0]}:0", "$B:1", f"{sep[0]}:1"],
        special_tokens=[cls, sep],
    )
    return ours


def _word_pieces(vocabulary: Vocabulary, settings: Settings, its: TokenizerClass) -> Made:
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
    return pipeline, _between_cls_and_sep(pipeline, vocabulary, settings, named)


def _with_id(pipeline: tokenizers.Tokenizer, token: str) -> tuple[str, int]:
    return token, cast("int", pipeline.token_to_id(token))  # which is there: add_to needs it


def _byte_pipeline(vocabulary: Vocabulary, *, spaced: bool) -> tokenizers.Tokenizer:
    pipeline = tokenizers.Tokenizer(models.BPE(vocabulary.ids(), vocabulary.merges))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    pipeline.decoder = decoders.ByteLevel()
    return pipeline


def _gpt2_pairs(vocabulary: Vocabulary, settings: Settings, its: TokenizerClass) -> Made:
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


def _roberta_pairs(vocabulary: Vocabulary, settings: Settings, its: TokenizerClass) -> Made:
    spaced, trimmed = bool(settings.flag("add_prefix_space", False)), bool(settings.flag("trim_offsets", True))
    pipeline = _byte_pipeline(vocabulary, spaced=spaced)
    named = settings.named(its.tokens)
    ours = settings.add_to(pipeline, named, vocabulary.listed or {}, ("cls_token", "sep_token"), vocabulary.where)
    cls, sep = (_with_id(pipeline, named[name].content) for name in ("cls_token", "sep_token"))
    pipeline.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=trimmed, add_prefix_space=spaced)
    return pipeline, ours


def _unigrams(
    vocabulary: Vocabulary, settings: Settings, unknown: int, first: tuple[normalizers.Normalizer, ...] = ()
) -> tokenizers.Tokenizer:
    """Return a pipeline of SentencePiece's unigrams.

    Args:
        unknown: id of the unknown token, whatever the vocabulary says.
        first: normalised by these, before the vocabulary's own table.
    """
    if isinstance(vocabulary.entries, dict):
        raise BundleError(f"{settings.folder}/{vocabulary.where}: model.vocab must be a Unigram's, with probabilities")
    entries = [(token, score) for token, score in vocabulary.entries]
    pipeline = tokenizers.Tokenizer(models.Unigram(entries, unknown, False))
    table = () if vocabulary.charsmap is None else (normalizers.Precompiled(vocabulary.charsmap),)
    if first or table:
        pipeline.normalizer = normalizers.Sequence([*first, *table])
    scheme = "always" if settings.flag("add_prefix_space", True) else "never"
    pipeline.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme)]
    )
    pipeline.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    return pipeline


def _xlm_roberta_unigrams(vocabulary: Vocabulary, settings: Settings, its: TokenizerClass) -> Made:
    pipeline, named = _unigrams(vocabulary, settings, 3), settings.named(its.tokens)
    ours = settings.add_to(pipeline, named, vocabulary.listed or {}, ("bos_token", "eos_token"), vocabulary.where)
    bos, eos = (_with_id(pipeline, named[name].content) for name in ("bos_token", "eos_token"))
    pipeline.post_processor = processors.TemplateProcessing(
        single=[bos[0], "$A", eos[0]], pair=[bos[0], "$A", eos[0], eos[0], "$B", eos[0]], special_tokens=[bos, eos]
    )
    return pipeline, ours


def _albert_unigrams(vocabulary: Vocabulary, settings: Settings, its: TokenizerClass) -> Made:
    first: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    first += [] if settings.flag("keep_accents", False) else [normalizers.NFKD(), normalizers.StripAccents()]
    first += [normalizers.Lowercase()] if settings.flag("do_lower_case", True) else []
    pipeline, named = _unigrams(vocabulary, settings, 1, tuple(first)), settings.named(its.tokens)
    return pipeline, _between_cls_and_sep(pipeline, vocabulary, settings, named)


def _t5_unigrams(vocabulary: Vocabulary, settings: Settings, its: TokenizerClass) -> Made:
    settings.add_sentinels()
    pipeline, named = _unigrams(vocabulary, settings, 2), settings.named(its.tokens)
    ours = settings.add_to(pipeline, named, vocabulary.listed or {}, ("eos_token",), vocabulary.where)
    eos = _with_id(pipeline, named["eos_token"].content)
    pipeline.post_processor = processors.TemplateProcessing(
        single=["$A", eos[0]], pair=["$A", eos[0], "$B", eos[0]], special_tokens=[eos]
    )
    return pipeline, ours


OF_BERT = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}
OF_T5 = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
OF_ALBERT = OF_BERT | {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "[CLS]", "eos_token": "[SEP]"}
OF_GPT2 = {f"{name}_token": "<|endoftext|>" for name in ("unk", "bos", "eos")}
OF_ROBERTA = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>", "unk_token": "<unk>"}
OF_ROBERTA |= {"pad_token": "<pad>", "mask_token": "<mask>"}
LIKE_BERT = ("Bert", "DistilBert", "Electra", "MobileBert", "LayoutLM", "SqueezeBert")
MADE_BY = {f"{name}Tokenizer": TokenizerClass(_word_pieces, OF_BERT, (WORDS,)) for name in LIKE_BERT}
MADE_BY |= {
    f"{name}Tokenizer": TokenizerClass(_roberta_pairs, OF_ROBERTA, (NUMBERED, MERGES), _pairs)
    for name in ("Roberta", "Bart", "Longformer")
}
MADE_BY["GPT2Tokenizer"] = TokenizerClass(_gpt2_pairs, OF_GPT2, (NUMBERED, MERGES), _pairs)
MADE_BY["XLMRobertaTokenizer"] = TokenizerClass(_xlm_roberta_unigrams, OF_ROBERTA)
MADE_BY["T5Tokenizer"] = TokenizerClass(_t5_unigrams, OF_T5)
MADE_BY["AlbertTokenizer"] = TokenizerClass(_albert_unigrams, OF_ALBERT)
AS_IT_STANDS = ("PreTrainedTokenizer", "TokenizersBackend")
AS_IT_STANDS += tuple(f"{name}Tokenizer" for name in ("Marian", "Llama", "CodeLlama", "Gemma", "Qwen2", "GPTNeoX"))
OWN_CLASS = {
    "bert": "BertTokenizer",
    "distilbert": "BertTokenizer",
    "electra": "BertTokenizer",
    "albert": "AlbertTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "gpt2": "GPT2Tokenizer",
    "t5": "T5Tokenizer",
    "mt5": "T5Tokenizer",
    "marian": "MarianTokenizer",
}
