"""Tokenizer: strings to ids and back, in four kinds that share one interface and one description of their result.

Source: Sennrich et al. 2016 (BPE), Schuster and Nakajima 2012 (WordPiece); the `tokenizers` package does the work.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

import tokenizers

from transformer_core.text.characters import check_text, check_texts
from transformer_core.text.encoding import Encoding, assemble, ids_within, room_for_text
from transformer_core.text.learning import KINDS, learn
from transformer_core.text.lexicon import build_lexicon
from transformer_core.text.loading import ROLES, describe, failing_clearly, parse, read_bounded
from transformer_core.text.special import BOS, CLS, EOS, MASK, NAMES_ELSEWHERE, PAD, SEP, UNK

__all__ = ["KINDS", "Tokenizer"]


class Tokenizer:
    """A trained tokenizer. It never changes after construction, so threads may share it.

    A special token that the text spells out ("a [MASK] b") becomes that token. Ids of special tokens that the
    vocabulary lacks are None.

    Args:
        pipeline: The trained pipeline, which must not be changed afterwards.
        named: What it calls its special tokens, by our names of them ("[MASK]"), as far as that is said.

    Raises:
        TokenizerError: The pipeline's model is of no kind that is supported.
    """

    def __init__(self, pipeline: tokenizers.Tokenizer, named: Mapping[str, str] | None = None) -> None:
        self._pipeline, self.named = pipeline, dict(named or {})
        self.kind, spelling, unknown_token = describe(pipeline)
        added = pipeline.get_added_tokens_decoder()
        self._lexicon = build_lexicon(pipeline.get_vocab(), added, spelling)
        self._special_ids = frozenset(id_ for id_, token in added.items() if token.special)
        self.pad_id, self.cls_id, self.sep_id = map(self._id_of_special, (PAD, CLS, SEP))
        self.mask_id, self.bos_id, self.eos_id = map(self._id_of_special, (MASK, BOS, EOS))
        self.unk_id = self.id_of(unknown_token) if unknown_token else self._id_of_special(UNK)

    @classmethod
    def train(
        cls,
        kind: str,
        texts: Iterable[str],
        *,
        vocab_size: int = 8000,
        lowercase: bool = False,
        min_frequency: int = 2,
        template: str = "cls",
    ) -> "Tokenizer":
        """Learn a vocabulary from texts; the same texts give the same vocabulary.

        Args:
            kind: "bpe" (of bytes, knows every text), "wordpiece", "word", or "character" (blanks included).
            texts: The texts to learn from.
            vocab_size: Largest number of entries, the seven special tokens included.
            lowercase: Whether to lower the case of what is looked up; the source text stays as it is.
            min_frequency: How often a token, or the pair to merge, must occur in the texts.
            template: "cls" for [CLS] a [SEP] b [SEP], "bos_eos" for [BOS] a [EOS] b [EOS], "none" for a b.

        Returns:
            The tokenizer.

        Raises:
            ValueError: An argument is out of its range, or the texts leave nothing to learn.
        """
        options = {"vocab_size": vocab_size, "lowercase": lowercase, "min_frequency": min_frequency}
        return cls(learn(kind, texts, template=template, **options))

    @classmethod
    def from_json(cls, text: str, named: Mapping[str, str] | None = None) -> "Tokenizer":
        """Rebuild a tokenizer from the text of a tokenizer.json; `parse` says what is refused."""
        pipeline, found = parse(text)
        return cls(pipeline, found if named is None else named)

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a tokenizer.json; `read_bounded` and `parse` say what is refused."""
        return cls.from_json(read_bounded(Path(path)))

    def to_json(self) -> str:
        """Return the tokenizer as the text of a tokenizer.json.

        A special token whose role its name does not tell says it in an entry of its own, which other readers pass over.
        """
        text = self._pipeline.to_str()
        roles: dict[str, list[str]] = {}
        for name, token in self.named.items():
            if self.id_of(token) != self._special_id(name):
                roles.setdefault(token, []).append(name)
        if not roles:
            return text
        data = json.loads(text)
        for added in data["added_tokens"]:
            if added["content"] in roles:
                added[ROLES] = roles[added["content"]]
        return json.dumps(data, ensure_ascii=False)

    def save(self, path: str | Path) -> None:
        """Write the tokenizer to a tokenizer.json."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @property
    def vocab_size(self) -> int:
        """Highest id plus one: the number of rows that an embedding needs."""
        return len(self._lexicon.tokens)

    def widened(self, size: int) -> "Tokenizer":
        """Return the same tokenizer with unused entries up to `size`, for a model with more embeddings than entries."""
        other = copy(self)
        other._lexicon = self._lexicon.widened(size)
        return other

    def encode(
        self, text: str, pair: str | None = None, *, max_len: int | None = None, add_special: bool = True
    ) -> Encoding:
        """Cut a text, or a pair of texts, into tokens.

        Args:
            text: The text.
            pair: A second text.
            max_len: Largest number of tokens, special tokens included; the longer text is cut first, from its end.
            add_special: Whether the template adds special tokens; a conversation's text spells its own.

        Raises:
            ValueError: A text is not valid Unicode, or max_len leaves no room for a token of each text.
            TokenizerError: A tokenizer trained elsewhere cannot encode this text.
        """
        check_text(text, "text")
        if pair is not None:
            check_text(pair, "pair")
        room = self._room(max_len, paired=pair is not None, add_special=add_special)
        with failing_clearly(f"cannot encode text={text[:60]!r}"):
            raw = self._pipeline.encode(text, pair, add_special_tokens=add_special)
        found = self._assemble(raw, text, pair, room)
        return found if add_special else replace(found, add_special=False)

    def encode_batch(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, max_len: int | None = None
    ) -> list[Encoding]:
        """Cut many texts, or pairs of texts, into tokens at once; each comes out as `encode` would have it.

        Args:
            texts: The texts.
            pairs: As many second texts, or None.
            max_len: As in `encode`.

        Returns:
            One encoding a text.

        Raises:
            ValueError: As in `encode`, or the texts are one str, or there are not as many pairs as texts.
            TokenizerError: As in `encode`.
        """
        texts = check_texts(texts, "texts")
        seconds = [None] * len(texts) if pairs is None else check_texts(pairs, "pairs")
        if len(seconds) != len(texts):
            raise ValueError(f"len(pairs)={len(seconds)} must equal len(texts)={len(texts)}")
        room = self._room(max_len, paired=pairs is not None)
        raws = self._cut(texts if pairs is None else list(zip(texts, seconds, strict=True)))
        return [self._assemble(raw, text, pair, room) for raw, text, pair in zip(raws, texts, seconds, strict=True)]

    def ids_of(self, texts: Sequence[str], *, max_len: int | None = None) -> list[tuple[int, ...]]:
        """Return the ids alone of what encode_batch returns: of thousands of texts in half the time.

        Args:
            texts: The texts.
            max_len: As in `encode`.

        Raises:
            ValueError, TokenizerError: As in `encode_batch`.
        """
        room = self._room(max_len, paired=False)
        return [ids_within(raw, room) for raw in self._cut(check_texts(texts, "texts"))]

    def is_special(self, id_: int) -> bool:
        """Tell whether a token stands for structure rather than for text."""
        return id_ in self._special_ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Return the text that token ids stand for; for bytes that make no whole character, U+FFFD.

        Args:
            ids: Token ids; a tensor of one axis will do.
            skip_special: Whether to leave out special tokens, [UNK] and [MASK] among them.

        Returns:
            The text.

        Raises:
            ValueError: An id is out of range.
        """
        ids = self._checked_ids(ids)
        with failing_clearly("cannot decode these ids"):
            return self._pipeline.decode(ids, skip_special_tokens=skip_special)

    def id_of(self, token: str) -> int | None:
        """Return the id of an entry as the vocabulary writes it, or None where there is no such entry."""
        return self._pipeline.token_to_id(token)

    def token_of(self, id_: int) -> str:
        """Return an entry as the vocabulary writes it; ValueError where there is no such id."""
        self._check_id(id_, "id_")
        token = self._lexicon.tokens[id_]
        if token is None:
            raise ValueError(f"id_={id_} must be an id in use: this vocabulary has a gap there")
        return token

    def label_of(self, id_: int) -> str:
        """Return an entry made readable, bytes that make no character as `<E4 BD>`; ValueError for no such id."""
        self._check_id(id_, "id_")
        return self._lexicon.labels[id_]

    def bytes_of(self, id_: int) -> bytes:
        """Return what an entry spells in UTF-8, maybe a part of a character; a continuation starts with its mark."""
        self._check_id(id_, "id_")
        return self._lexicon.pieces[id_]

    def labels_of(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the labels of one sequence of tokens, such as a generated one; shared characters become `你 1/3`."""
        return tuple(self._lexicon.labels_of(self._checked_ids(ids)))

    def vocabulary(self) -> tuple[str, ...]:
        """Return every entry's label, by id."""
        return self._lexicon.labels

    def _id_of_special(self, name: str) -> int | None:
        named = self.id_of(self.named.get(name, name))
        return self._special_id(name) if named is None else named

    def _special_id(self, name: str) -> int | None:
        ids = map(self.id_of, (name, *NAMES_ELSEWHERE[name]))
        return next((id_ for id_ in ids if id_ is not None), None)

    def _check_id(self, id_: int, name: str) -> None:
        if not 0 <= id_ < self.vocab_size:
            raise ValueError(f"{name}={id_} must be in [0, {self.vocab_size})")

    def _checked_ids(self, ids: Iterable[int]) -> list[int]:
        ids = [int(id_) for id_ in ids]
        if ids and not 0 <= min(ids) <= max(ids) < self.vocab_size:
            for place, id_ in enumerate(ids):
                self._check_id(id_, f"ids[{place}]")
        return ids

    def _cut(self, texts: Sequence[str] | Sequence[tuple[str, str | None]]) -> list[tokenizers.Encoding]:
        with failing_clearly(f"cannot encode one of {len(texts)} texts"):
            return self._pipeline.encode_batch(texts)

    def _room(self, max_len: int | None, *, paired: bool, add_special: bool = True) -> int | None:
        if max_len is None:
            return None
        n_special = self._pipeline.num_special_tokens_to_add(paired) if add_special else 0
        return room_for_text(max_len, n_special, n_texts=1 + paired)

    def _assemble(self, raw: tokenizers.Encoding, text: str, pair: str | None, room: int | None) -> Encoding:
        return assemble(
            raw, text, pair, room=room, lexicon=self._lexicon, special_ids=self._special_ids, unk_id=self.unk_id
        )
