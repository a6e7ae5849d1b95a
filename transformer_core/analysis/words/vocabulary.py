"""The vocabulary as vectors: any model's embedding matrix, which entries are words, and finding a typed one.

Vaswani et al. 2017, section 3.4.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from transformer_core.analysis.parts import input_embedding
from transformer_core.text import Tokenizer
from transformer_core.text.lexicon import CONTINUATION


@dataclass(frozen=True)
class Found:
    """What a typed word is to a vocabulary.

    Args:
        ids: of its tokens; one where the word is an entry of its own.
        labels: of these tokens.
        known: False where a part of it is in no entry.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    known: bool


def embedding_matrix(model: nn.Module) -> Tensor:
    """Return the rows that ids look up, as they are trained; ValueError as reading_part.

    Shapes:
        returns: (vocab, d_model), float32, on the CPU
    """
    return input_embedding(model).token.weight.detach().float().cpu()


def unit_rows(x: Tensor) -> Tensor:
    """Divide each row by its length, so that products are cosines; a row of zeros stays one.

    Shapes:
        x, returns: (row, d)
    """
    return x / x.norm(dim=1, keepdim=True).clamp(min=1e-30)


def cosines(vectors: Tensor) -> Tensor:
    """Return the cosine of every two rows, x . y / (|x| |y|); 0 where a row is 0.

    Shapes:
        vectors: (row, d); returns: (row, row)
    """
    unit = unit_rows(vectors)
    return (unit @ unit.T).clamp(-1.0, 1.0)


def find(tokenizer: Tokenizer, word: str) -> Found:
    """Find a typed word: an entry as the vocabulary writes or shows it, else the tokens that the word is cut into.

    Raises:
        ValueError: the word is blank, or no valid Unicode.
    """
    word = word.strip()
    if not word:
        raise ValueError("word='' must hold at least one character that is not a blank")
    labels = tokenizer.vocabulary()
    own = tokenizer.id_of(word)
    if own is None and word in labels:
        own = labels.index(word)
    if own is not None:
        return Found((own,), (labels[own],), known=True)
    cut = [_cut(tokenizer, text) for text in (word, f" {word}")]
    return next((found for found in cut if found.known and len(found.ids) == 1), cut[0])


def _cut(tokenizer: Tokenizer, text: str) -> Found:
    encoding = tokenizer.encode(text)
    own = encoding.own
    return Found(
        tuple(encoding.ids[place] for place in own),
        tuple(encoding.labels[place] for place in own),
        known=bool(own) and not any(encoding.unknown[place] for place in own),
    )


def template_of(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids that the tokenizer puts before and after every text, such as [CLS] and [SEP]."""
    encoding = tokenizer.encode("a")
    own = encoding.own
    return encoding.ids[: own[0]], encoding.ids[own[-1] + 1 :]


def special_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Return the ids of the special tokens that a tokenizer names."""
    names = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id", "bos_id", "eos_id")
    return frozenset(id_ for name in names if (id_ := getattr(tokenizer, name)) is not None)


def is_fragment(tokenizer: Tokenizer, id_: int) -> bool:
    """Return whether an entry is less than a written word: the rest of a word, one letter, or part of one."""
    label, spelled = tokenizer.label_of(id_), tokenizer.decode([id_], skip_special=False)
    if tokenizer.kind in ("word", "character"):
        return not spelled.strip()
    if tokenizer.kind == "wordpiece" and label.startswith(CONTINUATION):
        return True
    if tokenizer.kind == "bpe" and not spelled.startswith((" ", "\u2581")) and not label.startswith("\u2581"):
        return True
    word = spelled.strip()
    return "\ufffd" in word or not word or (len(word) == 1 and ord(word) < 0x2E80)


def listed(tokenizer: Tokenizer, *, count: int, fragments: bool = False, special: bool = False) -> tuple[int, ...]:
    """Return the first entries of a vocabulary, in the order in which the tokenizer learned them.

    That order roughly follows frequency: a word tokenizer counts words, BPE and WordPiece merge what is frequent first.

    Args:
        count: at most so many.
        fragments: with entries that are less than a word.
        special: with special tokens.

    Raises:
        ValueError: count is less than 1.
    """
    if count < 1:
        raise ValueError(f"count={count} must be at least 1")
    specials = special_ids(tokenizer)
    taken: list[int] = []
    for id_ in range(tokenizer.vocab_size):
        if len(taken) == count:
            break
        wanted = special if id_ in specials else (fragments or not is_fragment(tokenizer, id_))
        if wanted:
            taken.append(id_)
    return tuple(taken)
