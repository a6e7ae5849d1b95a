"""Chat: a conversation as the tokens that a chat model gets, and from which message each of them comes.

A template says nothing of where it puts what. A message's part of the text is what the text has more once the message
is there; a message's own words are found by rendering again with marks in their place, and only where the words, put
back, give the text. What cannot be found in this way is left open.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from transformer_core.analysis.words.tokenizer_comparison import MODEL, Cut, cut
from transformer_core.bundle import Bundle
from transformer_core.text.chat import CHATML, ChatTemplate, Messages

BEFORE, UNKNOWN = -1, -2  # in the place of a message: the template's own beginning; it cannot be told
MARK, ANSWER = re.compile("\ue000([0-9]{1,3})\ue001"), "\ue0001\ue001"


@dataclass(frozen=True)
class ChatTokens:
    """A conversation as tokens.

    Args:
        text: what the template makes of it.
        cut: the text's tokens.
        owners: the message that each token comes from; the number of messages for the header of the answer; BEFORE,
            UNKNOWN.
        own: whether a token has characters of that message's own words; else it is of the template.
        its_own: whether the template is the model's own; else it is ChatML.
    """

    text: str
    cut: Cut
    owners: tuple[int, ...]
    own: tuple[bool, ...]
    its_own: bool


def chat_tokens(*, bundle: Bundle, messages: Messages, prompted: bool) -> ChatTokens:
    """Make tokens of a conversation by the model's own template, or by ChatML where it has none.

    Args:
        messages: (role, text) of each.
        prompted: end with the header of the assistant's answer.

    Raises:
        ChatError: the template makes no text of it, in words.
        ValueError: a text is not valid Unicode.
    """
    template = bundle.chat or CHATML
    text = template.render(messages, prompted=prompted)
    found = cut(MODEL, bundle.tokenizer, text, add_special=False)
    owner, said = owners_of(template, messages, prompted, text)
    owners, own = [], []
    for start, end in zip(found.starts, found.ends, strict=True):
        places = range(start, max(end, start + 1))
        words = {owner[place] for place in places if said[place]}
        around = tuple(words or {owner[place] for place in places})
        owners.append(around[0] if len(around) == 1 else UNKNOWN)
        own.append(bool(words))
    return ChatTokens(text, found, tuple(owners), tuple(own), bundle.chat is not None)


def ends_of(bundle: Bundle) -> frozenset[int]:
    """Return the ids after which a GPT has no more to say: its end token, and a chat model's end of an answer.

    That is the first special token which its template writes after the assistant's words.
    """
    tokenizer, ends = bundle.tokenizer, {bundle.tokenizer.eos_id}
    if bundle.chat is not None:
        with suppress(ValueError):  # the template makes no text, or one that is not Unicode
            text = bundle.chat.render((("user", "?"), ("assistant", ANSWER)), prompted=False)
            after = tokenizer.encode(text.partition(ANSWER)[2], add_special=False).ids
            ends.add(next(filter(tokenizer.is_special, after), None))
    return frozenset(end for end in ends if end is not None)


def owners_of(template: ChatTemplate, messages: Messages, prompted: bool, text: str) -> tuple[list[int], list[bool]]:
    """Return of each character of a conversation's text which message it comes from, and whether it is of its words."""
    count = len(messages)
    marked = tuple((role, f"\ue000{place}\ue001") for place, (role, _) in enumerate(messages))
    shorter = tuple((messages[:end], False) for end in range(count + 1))
    with_marks, *begun = template.render_each(((marked, prompted), *shorter))
    if not isinstance(begun[0], str) or not text.startswith(begun[0]):  # few templates make a text of nothing
        bos = dict(template.tokens).get("bos_token", "")
        begun[0] = bos if text.startswith(bos) else ""
    known = [(BEFORE, 0)]  # where the part of each message begins
    for place, part in enumerate(begun):
        if isinstance(part, str) and text.startswith(part) and len(part) >= known[-1][1]:
            known.append((place, len(part)))
    known.append((count + 1, len(text)))
    owner, said = [UNKNOWN] * len(text), [False] * len(text)
    for (place, start), (after, end) in pairwise(known):
        if after == place + 1:
            owner[start:end] = [place] * (end - start)
    for place, start, end in _words(with_marks, messages, text) if isinstance(with_marks, str) else ():
        owner[start:end], said[start:end] = [place] * (end - start), [True] * (end - start)
    return owner, said


def _words(marked: str, messages: Messages, text: str) -> list[tuple[int, int, int]]:
    """Return (message, start, end) of the words of messages in a text; none where they do not give it, put back."""
    parts, at, found = MARK.split(marked), 0, []  # every second part is a message's number
    for before, number, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        at += len(before)
        words = messages[int(number)][1] if int(number) < len(messages) else ""
        forms = (words, words.strip(), words.rstrip(), words.lstrip())
        form = next((form for form in forms if text.startswith(form + after, at)), None)
        if form is None or not text.startswith(before, at - len(before)):
            return []
        found.append((int(number), at, at + len(form)))
        at += len(form)
    return found if at + len(parts[-1]) == len(text) else []
