"""Learning a vocabulary: the four ways to cut text into tokens, each trained by the `tokenizers` package.

Source: Sennrich et al. 2016 (BPE), Radford et al. 2019 (its byte level), Schuster and Nakajima 2012 (WordPiece).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

from transformer_core.text.characters import check_texts
from transformer_core.text.special import BOS, BOS_ID, CLS, CLS_ID, EOS, EOS_ID, SEP, SEP_ID, SPECIAL_TOKENS, UNK
from transformer_core.untrusted.tokenizer_json import UNWRITTEN_SPACE

KINDS = ("bpe", "wordpiece", "word", "character")
TEMPLATES = ("cls", "bos_eos", "none")
CONTINUING = "##"
ONE_CHARACTER = r"[\s\S]"
# Merging takes quadratic time in a word's length, so longer words (and runs of blanks) are learned from in parts.
LONG_WORD = re.compile(r"\S{500}(?=\S)|\s{500}(?=\s)")


def learn(
    kind: str, texts: Iterable[str], *, vocab_size: int, lowercase: bool, min_frequency: int, template: str
) -> tokenizers.Tokenizer:
    """Learn a vocabulary and return the pipeline that uses it; the arguments are those of `Tokenizer.train`."""
    texts = _checked(kind, texts, vocab_size, min_frequency, template)
    if kind == "bpe":
        pipeline = _learn_bpe(_without_long_words(texts), vocab_size, lowercase, min_frequency)
    elif kind == "wordpiece":
        pipeline = _learn_wordpiece(_without_long_words(texts), vocab_size, lowercase, min_frequency)
    else:
        pipeline = _words(lowercase) if kind == "word" else _characters(lowercase)
        pipeline.train_from_iterator(
            texts,
            trainers.WordLevelTrainer(
                vocab_size=vocab_size,
                min_frequency=min_frequency,
                special_tokens=list(SPECIAL_TOKENS),
                show_progress=False,
            ),
        )
    if pipeline.get_vocab_size() == len(SPECIAL_TOKENS):
        raise ValueError(f"min_frequency={min_frequency} must be lower: no token of the texts is so frequent")
    if template != "none":
        pipeline.post_processor = _template(template)
    return pipeline


def _checked(kind: str, texts: Iterable[str], vocab_size: int, min_frequency: int, template: str) -> list[str]:
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} must be one of {KINDS}")
    if template not in TEMPLATES:
        raise ValueError(f"template={template!r} must be one of {TEMPLATES}")
    least = len(SPECIAL_TOKENS) + {"bpe": 256, "wordpiece": 2}.get(kind, 1)
    if vocab_size < least:
        raise ValueError(f"vocab_size={vocab_size} must be at least {least} for kind={kind!r}")
    if min_frequency < 1:
        raise ValueError(f"min_frequency={min_frequency} must be at least 1")
    texts = check_texts(texts, "texts")
    if not any(text and not text.isspace() for text in texts):
        raise ValueError(f"texts hold nothing but blanks in {len(texts)} items, must hold text to learn from")
    return texts


def _without_long_words(texts: Sequence[str]) -> list[str]:
    parts = []
    for text in texts:
        cuts = (0, *(match.end() for match in LONG_WORD.finditer(text)), len(text))
        parts += [text[start:end] for start, end in pairwise(cuts)]
    return parts


def _learn_bpe(texts: Sequence[str], vocab_size: int, lowercase: bool, min_frequency: int) -> tokenizers.Tokenizer:
    """Byte-level: all 256 bytes are entries from the start, so that no text is ever unknown."""
    pipeline = tokenizers.Tokenizer(models.BPE())
    if lowercase:
        pipeline.normalizer = normalizers.Lowercase()
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pipeline.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pipeline.train_from_iterator(texts, trainer)
    return pipeline


def _learn_wordpiece(
    texts: Sequence[str], vocab_size: int, lowercase: bool, min_frequency: int
) -> tokenizers.Tokenizer:
    """Departure from Schuster and Nakajima: `tokenizers` merges the most frequent pair, not the likeliest.

    Its trainer numbers the continuing characters (##a) in the order of a hash table with a random seed, so that two
    trainings differ. A first one without merges therefore lists them, and the second is given them in sorted order.
    """
    pipeline = _words(lowercase)
    texts = _without_rare_characters(texts, pipeline.normalizer, (vocab_size - len(SPECIAL_TOKENS)) // 2, min_frequency)
    alphabet: list[str] = []
    for size in (0, vocab_size):
        pipeline.model = models.WordPiece(unk_token=UNK)
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=min_frequency,
            special_tokens=[*SPECIAL_TOKENS, *alphabet],
            continuing_subword_prefix=CONTINUING,
            show_progress=False,
        )
        pipeline.train_from_iterator(texts, trainer)
        alphabet = sorted(set(pipeline.get_vocab()) - set(SPECIAL_TOKENS))
    # The trainer took the alphabet for special tokens; a new pipeline with the same vocabulary does not.
    vocabulary = pipeline.get_vocab()
    pipeline = _words(lowercase)
    pipeline.model = models.WordPiece(vocabulary, unk_token=UNK)
    pipeline.add_special_tokens(list(SPECIAL_TOKENS))
    return pipeline


def _without_rare_characters(
    texts: Sequence[str], normalizer: normalizers.Normalizer, limit: int, min_frequency: int
) -> list[str]:
    """Blank out all but the `limit` most frequent characters: each may need two entries, a and ##a."""
    texts = [normalizer.normalize_str(text) for text in texts]
    counts = Counter[str]()
    for text in texts:
        counts.update(text)
    frequent = [char for char, count in counts.items() if count >= min_frequency and not char.isspace()]
    kept = set(sorted(frequent, key=lambda char: (-counts[char], char))[:limit])
    blank = {ord(char): " " for char in counts if char not in kept}
    return [text.translate(blank) for text in texts]


def _words(lowercase: bool) -> tokenizers.Tokenizer:
    """Cut as BERT does, at blanks and around each punctuation mark and Chinese character.

    Departure from BERT's uncased vocabulary: lowercase keeps accents.
    """
    pipeline = tokenizers.Tokenizer(models.WordLevel(unk_token=UNK))
    pipeline.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=False)
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    spaced = decoders.WordPiece(prefix=CONTINUING, cleanup=False)
    pipeline.decoder = decoders.Sequence([spaced, decoders.Fuse(), decoders.Replace(Regex(UNWRITTEN_SPACE), "")])
    return pipeline


def _characters(lowercase: bool) -> tokenizers.Tokenizer:
    pipeline = tokenizers.Tokenizer(models.WordLevel(unk_token=UNK))
    if lowercase:
        pipeline.normalizer = normalizers.Lowercase()
    pipeline.pre_tokenizer = pre_tokenizers.Split(Regex(ONE_CHARACTER), "isolated")
    pipeline.decoder = decoders.Fuse()
    return pipeline


def _template(template: str) -> processors.TemplateProcessing:
    if template == "cls":
        return processors.TemplateProcessing(
            single=f"{CLS} $A {SEP}",
            pair=f"{CLS} $A {SEP} $B:1 {SEP}:1",
            special_tokens=[(CLS, CLS_ID), (SEP, SEP_ID)],
        )
    return processors.TemplateProcessing(
        single=f"{BOS} $A {EOS}", pair=f"{BOS} $A {EOS} $B:1 {EOS}:1", special_tokens=[(BOS, BOS_ID), (EOS, EOS_ID)]
    )
