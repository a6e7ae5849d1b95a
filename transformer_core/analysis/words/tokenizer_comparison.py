"""Tokenizing: one sentence cut by every available tokenizer, with what each keeps, hides and loses.

Sennrich et al. 2016 (BPE), Schuster and Nakajima 2012 (WordPiece).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from transformer_core.bundle import Bundle
from transformer_core.config import require_choice, require_range
from transformer_core.text import KINDS, Encoding, Tokenizer
from transformer_core.training.corpora import Language, passage

CORPORA = ("both", *get_args(Language))
MODEL = "model"
LOSSES = ("unknown", "case", "blanks", "characters")
LEAST_VOCABULARY, MOST_VOCABULARY = 300, 8_000


@dataclass(frozen=True)
class Cut:
    """A sentence as tokens.

    Args:
        name: "model" for the model's own tokenizer, else the kind.
        kind: one of KINDS.
        vocab_size: entries of the vocabulary.
        labels: readable, one per token; an unknown token has the characters that it hides.
        ids: one per token.
        starts, ends: of the characters that a token stands for; both 0 for a token that the template adds.
        special, unknown: whether a token is so.
        shared: whether a token holds a part of a character.
        spelled: the bytes of each token, in hexadecimal.
        decoded: the text that the ids give back.
        losses: what it lacks of the text, of LOSSES; none where it is the same.
        n_tokens: without special tokens.
        n_unknown: characters hidden by unknown tokens.
    """

    name: str
    kind: str
    vocab_size: int
    labels: tuple[str, ...]
    ids: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    special: tuple[bool, ...]
    unknown: tuple[bool, ...]
    shared: tuple[bool, ...]
    spelled: tuple[str, ...]
    decoded: str
    losses: tuple[str, ...]
    n_tokens: int
    n_unknown: int


@dataclass(frozen=True)
class Cuts:
    """One sentence by several tokenizers.

    Args:
        cuts: one per tokenizer.
        n_characters: of the sentence, in code points.
        n_bytes: of its UTF-8.
        pairs: n_tokens squared, one per tokenizer: the scores that one head of attention computes.
    """

    text: str
    cuts: tuple[Cut, ...]
    n_characters: int
    n_bytes: int
    pairs: tuple[int, ...]


@lru_cache(maxsize=32)
def learned_tokenizer(kind: str, corpus: str, vocab_size: int) -> Tokenizer:
    """Learn a tokenizer from the built-in texts; it adds no special tokens and keeps upper case.

    Args:
        kind: one of KINDS.
        corpus: one of CORPORA.
        vocab_size: the most entries; characters and words may be fewer.

    Raises:
        ValueError: an argument is out of range.
    """
    require_choice("corpus", corpus, CORPORA)
    require_range("vocab_size", vocab_size, LEAST_VOCABULARY, MOST_VOCABULARY)
    return Tokenizer.train(kind, corpus_text(corpus).splitlines(), vocab_size=vocab_size, template="none")


def corpus_text(corpus: str) -> str:
    """Return the built-in text of a corpus: a story and reviews, in English, Chinese or both.

    Raises:
        ValueError: there is no such corpus.
    """
    require_choice("corpus", corpus, CORPORA)
    return "".join(passage(language) for language in get_args(Language) if corpus in ("both", language))


def cut_sentence(*, bundle: Bundle, text: str, corpus: str, vocab_size: int) -> Cuts:
    """Cut a sentence with the model's tokenizer and with one of each kind that was learned from a built-in corpus.

    Raises:
        ValueError: an argument is out of range, or the text is not valid Unicode.
    """
    tokenizers = {MODEL: bundle.tokenizer}
    tokenizers |= {kind: learned_tokenizer(kind, corpus, vocab_size) for kind in KINDS}
    cuts = tuple(cut(name, tokenizer, text) for name, tokenizer in tokenizers.items())
    return Cuts(text, cuts, len(text), len(text.encode()), tuple(one.n_tokens**2 for one in cuts))


def cut(name: str, tokenizer: Tokenizer, text: str, *, add_special: bool = True) -> Cut:
    """Cut a text and say what came of it.

    Args:
        add_special: as of Tokenizer.encode.

    Raises:
        ValueError: the text is not valid Unicode.
    """
    encoding = tokenizer.encode(text, add_special=add_special)
    surfaces = [encoding.surface(place) for place in range(len(encoding))]
    decoded = tokenizer.decode(encoding.ids)
    return Cut(
        name=name,
        kind=tokenizer.kind,
        vocab_size=tokenizer.vocab_size,
        labels=encoding.labels,
        ids=encoding.ids,
        starts=tuple(start for start, _ in encoding.offsets),
        ends=tuple(end for _, end in encoding.offsets),
        special=encoding.special,
        unknown=encoding.unknown,
        shared=_shared(encoding),
        spelled=tuple(
            (tokenizer.bytes_of(id_) if tokenizer.kind == "bpe" else surface.encode()).hex(" ").upper()
            for id_, surface in zip(encoding.ids, surfaces, strict=True)
        ),
        decoded=decoded,
        losses=_losses(encoding, decoded),
        n_tokens=len(encoding) - sum(encoding.special),
        n_unknown=sum(len(surface) for surface, hidden in zip(surfaces, encoding.unknown, strict=True) if hidden),
    )


def _shared(encoding: Encoding) -> tuple[bool, ...]:
    """Say of each token whether one beside it stands for a character that it stands for, too."""
    spans = [span if span[1] else None for span in encoding.offsets]
    return tuple(
        span is not None
        and any(other is not None and max(span[0], other[0]) < min(span[1], other[1]) for other in (before, after))
        for before, span, after in zip([None, *spans[:-1]], spans, [*spans[1:], None], strict=True)
    )


def _losses(encoding: Encoding, decoded: str) -> tuple[str, ...]:
    """Name what decoding did not give back; special tokens that the text spells do not count."""
    gone = [
        place
        for place in range(len(encoding))
        if encoding.unknown[place] or (encoding.special[place] and encoding.offsets[place][1])
    ]
    kept, last = "", 0
    for start, end in (encoding.offsets[place] for place in gone):
        kept, last = kept + encoding.text[last:start], end
    kept += encoding.text[last:]
    losses = ["unknown"] if any(encoding.unknown) else []
    if decoded == kept:
        return tuple(losses)
    bare, bare_decoded = ("".join(text.split()) for text in (kept, decoded))
    if bare.lower() != bare_decoded.lower():
        return (*losses, "characters")
    losses += ["case"] if bare != bare_decoded else []
    return (*losses, "blanks") if kept.lower() != decoded.lower() else tuple(losses)
