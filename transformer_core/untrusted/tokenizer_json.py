"""What a tokenizer.json may be made of, checked before the `tokenizers` package builds any of it.

A component can make a text longer (Replace), search it again and again (a regular expression that backtracks), or be as
large as its author likes (a template). Each kind that is read stands in KINDS_OF with a bound on what it can do.

Source: the file format of the `tokenizers` package.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

NORMALIZERS = ("BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled")
NORMALIZERS += ("Prepend", "Replace", "Strip", "StripAccents")
PRE_TOKENIZERS = ("BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "Metaspace", "Punctuation", "Split")
PRE_TOKENIZERS += ("UnicodeScripts", "Whitespace", "WhitespaceSplit")
POST_PROCESSORS = ("BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing")
DECODERS = ("BPEDecoder", "ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece")
KINDS_OF = {
    "normalizer": NORMALIZERS,
    "pre_tokenizer": PRE_TOKENIZERS,
    "post_processor": POST_PROCESSORS,
    "decoder": DECODERS,
}
STEPS_OF = {  # what a Sequence calls its list
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
MODELS = ("BPE", "WordPiece", "WordLevel", "Unigram")
MOST_COMPONENTS, DEEPEST = 16, 4
# How many characters one may become: blanks go around 你, 😀 is written as four bytes, a word gets a mark before it.
MOST_GROWTH = 4
GROWTH = {"BertNormalizer": 3, "ByteLevel": 4, "Metaspace": 2}
GROWTH_IN_DECODING = {"BPEDecoder": 2}
LONGEST_FORM = 18  # of U+FDFA, the longest that any form of Unicode makes of a character
MOST_IN_TEMPLATE = 16
MOST_ADDED, LONGEST_TOKEN = 8_192, 256  # Gemma has 6,414
LONGEST_WORD = 200  # WordPiece tries every part of a word; BERT reads words of 100 characters
LONGEST_MARK = 64
MARKS = ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")

# Words are decoded with a space between them; at these places written text has none.
UNWRITTEN_SPACE = "|".join(
    (
        r"(?<=[\p{Han}\u3000-\u303f\uff00-\uffef]) (?=[\p{Han}\u3000-\u303f\uff00-\uffef])",
        r" (?=[.,!?:;%)\]}])",
        r"(?<=[(\[{]) ",
        r"(?<=\w) (?=['’] \w)",
        r"(?<=\w ['’]) (?=\w)",
    )
)
# One character or class, repeated or not, leaves nothing to go back to; of others only these are known to be quick.
ONE_CLASS = re.compile(
    r"(?:\\[sSdDwWnrt]|\\[pP]\{\^?\w{1,30}\}|\[\^?(?:\\[sSdDwWnrt]|\\[pP]\{\^?\w{1,30}\}|[^\[\]\\&])+\]|[^\\\[\](){}*+?|^$])"
    r"(?P<repeated>[*+?]|\{\d{1,2}(?:,\d{0,2})?\})?"
)
KNOWN_PATTERNS = {
    "GPT-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "GPT-2 (short)": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "CLIP": r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "Llama 3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "Qwen 2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "ours": UNWRITTEN_SPACE,
}


class TokenizerError(ValueError):
    """A tokenizer file cannot be used, or a loaded tokenizer failed on a text."""


def check_components(data: dict[str, Any]) -> None:
    """Check what a tokenizer.json is made of.

    Args:
        data: its content; the entry "model" is an object.

    Raises:
        TokenizerError: the entry, what it holds, and what is needed.
    """
    leaves = {part: list(_leaves(part, data.get(part))) for part in KINDS_OF}
    _check_growth([*leaves["normalizer"], *leaves["pre_tokenizer"]], GROWTH)
    _check_growth(leaves["decoder"], GROWTH_IN_DECODING)
    _check_precompiled(leaves["normalizer"])
    _check_templates(leaves["post_processor"])
    _check_model(data["model"])
    check_added([token.get("content") for token in _objects("added_tokens", data.get("added_tokens") or [])])


def check_added(contents: list[Any], where: str = "added_tokens") -> None:
    """Check the tokens that are added to a vocabulary: every text is searched for each of them.

    Args:
        contents: what they spell.
        where: the entry or file that lists them, for the message.

    Raises:
        TokenizerError: there are too many, or one is no text or too long.
    """
    if len(contents) > MOST_ADDED:
        raise TokenizerError(f"{where} has {len(contents):,} tokens, must have at most {MOST_ADDED:,}")
    for content in contents:
        if not isinstance(content, str) or len(content) > LONGEST_TOKEN:
            raise TokenizerError(
                f"{where} has {content!r:.60}, must have texts of at most {LONGEST_TOKEN} characters each"
            )


def _leaves(part: str, component: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the components of a part that are no Sequence, each with its place, in the order of their work."""
    seen, waiting = 0, [(part, component, 1)] if component is not None else []
    while waiting:
        where, found, depth = waiting.pop()
        seen += 1
        if seen > MOST_COMPONENTS or depth > DEEPEST:
            raise TokenizerError(
                f"{part} has more than {MOST_COMPONENTS} components or is nested more than {DEEPEST} deep, "
                "must have fewer"
            )
        kind = found.get("type") if isinstance(found, dict) else None
        if kind == "Sequence":
            steps = found.get(STEPS_OF[part])
            if not isinstance(steps, list):
                raise TokenizerError(f"{where}.{STEPS_OF[part]} is {steps!r:.60}, must be a list")
            places = (f"{where}.{STEPS_OF[part]}[{number}]" for number in range(len(steps)))
            waiting += [(place, step, depth + 1) for place, step in zip(places, steps, strict=True)][::-1]
        elif kind in KINDS_OF[part]:
            yield where, found
        else:
            raise TokenizerError(
                f"{where} has type={kind!r:.60}, must be one of {', '.join(KINDS_OF[part])} or a Sequence of them"
            )


def _check_growth(leaves: list[tuple[str, dict[str, Any]]], usual: Mapping[str, int]) -> None:
    """Refuse components that together could make a text longer than MOST_GROWTH times.

    Args:
        usual: how many characters a component of a kind may make of one, whatever its entries; 1 for kinds that are not
            in it. The forms of Unicode count as 1: they have a bound of their own, LONGEST_FORM, whatever their number.
    """
    growth = 1
    for where, component in leaves:
        growth *= usual.get(component["type"], 1) * _growth(where, component)
        if growth > MOST_GROWTH:
            raise TokenizerError(
                f"{where}, a {component['type']}, makes texts {growth:,} times as long together with what comes before "
                f"it, must make them at most {MOST_GROWTH} times as long"
            )


def _growth(where: str, component: dict[str, Any]) -> int:
    """Return how many characters the entries of a component let it make of one."""
    kind = component["type"]
    if kind == "Prepend":
        return 1 + len(_text(f"{where}.prepend", component.get("prepend")))
    if kind not in ("Replace", "Split"):
        return 1
    n_matched = _shortest_match(f"{where}.pattern", component.get("pattern"))
    if kind == "Split":
        return 1
    content = _text(f"{where}.content", component.get("content"))
    return max(1, -(-len(content) // n_matched)) if n_matched else 1 + len(content)


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TokenizerError(f"{where} is {value!r:.60}, must be a text")
    return value


def _shortest_match(where: str, pattern: Any) -> int:
    """Return the fewest characters that a pattern matches, of a regular expression 0 or 1."""
    form, text = next(iter(pattern.items())) if isinstance(pattern, dict) and len(pattern) == 1 else ("", None)
    if form not in ("String", "Regex"):
        raise TokenizerError(f"{where} is {pattern!r:.60}, must be an object with a 'String' or a 'Regex'")
    text = _text(f"{where}.{form}", text)
    if form == "String":
        return len(text)
    if text in KNOWN_PATTERNS.values():
        return 1
    if (found := ONE_CLASS.fullmatch(text)) is None:
        raise TokenizerError(
            f"{where} is the regular expression {text!r:.60}, which may take very long on some texts; must be one "
            f"character or class, repeated or not, or that of {', '.join(KNOWN_PATTERNS)}"
        )
    return 0 if (found["repeated"] or "").startswith(("*", "?", "{0")) else 1


def _check_precompiled(leaves: list[tuple[str, dict[str, Any]]]) -> None:
    tables = [(where, component) for where, component in leaves if component["type"] == "Precompiled"]
    if len(tables) > 1:
        raise TokenizerError(f"{tables[1][0]} is a second Precompiled, must be the only one")
    for where, component in tables:
        try:
            table = base64.b64decode(component.get("precompiled_charsmap") or "", validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise TokenizerError(f"{where}.precompiled_charsmap must be base64") from None
        forms = table[4 + int.from_bytes(table[:4], "little") :].split(b"\0")
        if (longest := max(len(form.decode("utf-8", "replace")) for form in forms)) > LONGEST_FORM:
            raise TokenizerError(
                f"{where}.precompiled_charsmap makes {longest:,} characters of one, must make at most {LONGEST_FORM}"
            )


def _check_templates(leaves: list[tuple[str, dict[str, Any]]]) -> None:
    """Refuse post-processors that add more than MOST_IN_TEMPLATE tokens and texts in all."""
    templates = [(where, component) for where, component in leaves if component["type"] == "TemplateProcessing"]
    for form in ("single", "pair"):
        total = 0
        for where, template in templates:
            special = template.get("special_tokens") or {}
            if not isinstance(special, dict) or len(special) > MOST_IN_TEMPLATE:
                raise TokenizerError(
                    f"{where}.special_tokens has {len(special):,} entries, must be an object with at most "
                    f"{MOST_IN_TEMPLATE}"
                )
            pieces = _objects(f"{where}.{form}", template.get(form) or [])
            total += sum(_n_tokens(piece, special) for piece in pieces)
            if total > MOST_IN_TEMPLATE:
                raise TokenizerError(
                    f"{where}.{form} has {total:,} tokens and texts, must have at most {MOST_IN_TEMPLATE}"
                )


def _n_tokens(piece: dict[str, Any], special: dict[str, Any]) -> int:
    """Return how many tokens an entry of a template stands for; a text counts as one."""
    named = piece.get("SpecialToken")
    token = special.get(str(named.get("id"))) if isinstance(named, dict) else None
    ids = token.get("ids") if isinstance(token, dict) else None
    return max(1, len(ids)) if isinstance(ids, list) else 1


def _objects(where: str, values: Any) -> list[dict[str, Any]]:
    if not (isinstance(values, list) and all(isinstance(value, dict) for value in values)):
        raise TokenizerError(f"{where} is {values!r:.60}, must be a list of objects")
    return values


def _check_model(model: dict[str, Any]) -> None:
    if model.get("type") not in (*MODELS, None):  # files of older versions name none
        raise TokenizerError(f"model.type={model.get('type')!r:.60}, must be one of {', '.join(MODELS)}")
    for name in MARKS:
        if isinstance(mark := model.get(name), str) and len(mark) > LONGEST_MARK:
            raise TokenizerError(f"model.{name} has {len(mark):,} characters, must have at most {LONGEST_MARK}")
    longest = model.get("max_input_chars_per_word")
    if isinstance(longest, int) and longest > LONGEST_WORD:
        raise TokenizerError(f"model.max_input_chars_per_word={longest}, must be at most {LONGEST_WORD}")
    entries = model["vocab"] if isinstance(model.get("vocab"), list) else []  # of a unigram model, tried at every place
    for piece in (str(entry[0]) for entry in entries if isinstance(entry, list) and entry):
        if len(piece) > LONGEST_TOKEN:
            raise TokenizerError(
                f"model.vocab has {piece!r:.60} of {len(piece):,} characters, must have at most {LONGEST_TOKEN}"
            )
