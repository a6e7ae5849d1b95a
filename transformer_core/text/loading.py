"""Loading a tokenizer: a tokenizer.json from any source is checked before it is used.

Source: the file format of the `tokenizers` package.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tokenizers

from transformer_core.text.learning import ONE_CHARACTER
from transformer_core.text.lexicon import Spelling
from transformer_core.text.special import SPECIAL_TOKENS
from transformer_core.untrusted.tokenizer_json import TokenizerError, check_components

MAX_BYTES = 32 * 2**20
MAX_ID = 2**20 - 1  # four times the largest vocabulary in common use; an embedding needs a row for every id below it
ROLES = "stands_for"  # an entry of ours of an added token
KIND_OF_MODEL = {"BPE": "bpe", "WordPiece": "wordpiece", "WordLevel": "word", "Unigram": "unigram"}


@contextmanager
def failing_clearly(action: str) -> Iterator[None]:
    """Turn every error of the Rust code into a TokenizerError, panics included, which are no Exception.

    Args:
        action: What was being done, for the message: "cannot ...".

    Raises:
        TokenizerError: The body failed.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise TokenizerError(f"{action}: {error!s:.300}") from error
        raise


def read_bounded(path: Path) -> str:
    """Read a text file of at most MAX_BYTES.

    Args:
        path: A regular file in UTF-8.

    Returns:
        Its text.

    Raises:
        TokenizerError: It is no regular file, too large, or not UTF-8.
        FileNotFoundError: There is no such file.
    """
    size = path.stat().st_size
    if not path.is_file():
        raise TokenizerError(f"path={str(path)!r} must be a regular file")
    if size > MAX_BYTES:
        raise TokenizerError(f"path={str(path)!r} has {size} bytes, must have at most {MAX_BYTES}")
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TokenizerError(f"path={str(path)!r} must be UTF-8: byte {error.start} is not") from None


def parse(text: str) -> tuple[tokenizers.Tokenizer, dict[str, str]]:
    """Build a pipeline from the text of a tokenizer.json and test it on a short text.

    An added token may say which special tokens it is, by our names of them, as Tokenizer.to_json writes it.

    Truncation, padding and BPE dropout that the file asks for are switched off: they are options of a call, not of
    a tokenizer that many threads share.

    Args:
        text: JSON of at most MAX_BYTES in UTF-8.

    Returns:
        The pipeline, and what it calls its special tokens, by our names of them.

    Raises:
        TokenizerError: The text is too long, truncated, not JSON, no tokenizer, made of what `check_components`
            refuses, or a tokenizer that cannot encode.
    """
    if not isinstance(text, str):
        raise TokenizerError(f"text={text!r:.80} must be a str")
    if len(text) > MAX_BYTES:
        raise TokenizerError(f"text has {len(text)} characters, must have at most {MAX_BYTES}")
    try:
        data = json.loads(text, object_pairs_hook=_without_doubles)
    except TokenizerError:
        raise
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"text must be complete JSON: {error!s:.200}") from None
    if not isinstance(data, dict) or not isinstance(data.get("model"), dict):
        raise TokenizerError("text is JSON but no tokenizer: must be an object with a 'model' object in it")
    check_components(data)
    named = _named(data)
    with failing_clearly("text is JSON but no tokenizer that can be loaded"):
        pipeline = tokenizers.Tokenizer.from_str(text)  # which passes over roles
        pipeline.no_truncation()
        pipeline.no_padding()
        if isinstance(pipeline.model, tokenizers.models.BPE):
            pipeline.model.dropout = None
    _try_out(pipeline)
    return pipeline, named


def _named(data: dict[str, Any]) -> dict[str, str]:
    """Return the token of each role that added tokens say they have."""
    found: dict[str, str] = {}
    for token in data.get("added_tokens") or []:
        roles = token.get(ROLES, [])
        if not isinstance(roles, list) or not all(role in SPECIAL_TOKENS for role in roles):
            raise TokenizerError(f"{ROLES}={roles!r:.60} must list some of {', '.join(SPECIAL_TOKENS)}")
        found |= dict.fromkeys(roles, token["content"])
    return found


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; of an entry that is there twice another reader may take the other one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise TokenizerError(
            f"an object of the file has {len(pairs)} entries of {len(found)} names, must have each once"
        )
    return found


def describe(pipeline: tokenizers.Tokenizer) -> tuple[str, Spelling, str | None]:
    """Infer how a pipeline cuts and writes its tokens.

    Args:
        pipeline: Any pipeline of the `tokenizers` package.

    Returns:
        Its kind, the spelling of its entries, and its unknown token if the model names one.

    Raises:
        TokenizerError: The model is of no kind that is supported.
    """
    model = pipeline.model
    named = type(model).__name__
    if named not in KIND_OF_MODEL:
        raise TokenizerError(f"model type {named!r} is not supported, must be one of {tuple(KIND_OF_MODEL)}")
    kind = KIND_OF_MODEL[named]
    parts = (pipeline.normalizer, pipeline.pre_tokenizer, pipeline.decoder)
    normalizer, cutter, decoder = (json.loads(part.__getstate__()) if part is not None else {} for part in parts)
    if kind == "word" and cutter.get("pattern") in ({"Regex": ONE_CHARACTER}, {"String": ""}):
        kind = "character"
    stages = json.dumps([normalizer, cutter, decoder], ensure_ascii=False)
    spelling = Spelling(
        byte_level='"ByteLevel"' in stages,
        byte_fallback=bool(getattr(model, "byte_fallback", False)),
        metaspace="▁" in stages,
        continuation=getattr(model, "continuing_subword_prefix", None) or "",
        word_end=getattr(model, "end_of_word_suffix", None) or "",
    )
    return kind, spelling, getattr(model, "unk_token", None)


def _try_out(pipeline: tokenizers.Tokenizer) -> None:
    vocabulary = pipeline.get_vocab()
    if not vocabulary:
        raise TokenizerError("the tokenizer has no vocabulary, must have at least one entry")
    highest = max(vocabulary.values())
    if highest > MAX_ID:
        raise TokenizerError(f"the highest token id={highest} must be at most {MAX_ID}")
    with failing_clearly("the tokenizer cannot encode a short text"):
        ids = {*pipeline.encode("a").ids, *pipeline.encode("a", "你").ids}
    for id_ in sorted(ids):
        if pipeline.id_to_token(id_) is None:
            raise TokenizerError(f"the tokenizer's template uses id={id_}, must be an id of its vocabulary")
