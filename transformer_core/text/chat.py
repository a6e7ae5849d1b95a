"""Chat templates: what makes one text of a conversation, as a chat model was trained to read it.

A template is a program in Jinja that comes with a model. It runs in a process of its own, in a sandbox and with limits
on time, memory and length; what it does beyond them is told in words.
"""

import atexit
import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from transformer_core.text import chat_process
from transformer_core.text.characters import check_text
from transformer_core.warm_process import ProcessDiedError, WarmProcess

LARGEST_TEMPLATE = 64 << 10  # characters; those of today's models have up to 20,000
PATIENCE = 20.0  # seconds, more than those of a processor that a request may take: the machine may be busy
MOST_KEPT = 256
COMMAND = (sys.executable, "-P", chat_process.__file__)
Messages = tuple[tuple[str, str], ...]  # (role, text) of each
Chat = tuple[Messages, bool]  # and whether it ends with the header of the assistant's answer
Answers = list[dict[str, str]]


WHY = {  # what a template does instead of making a text
    "refuses": "refuses this conversation: {detail}",
    "reaches": "reaches for what a template may not have: {detail}",
    "time": "did not end within {detail} s of a processor, and was stopped",
    "memory": "takes more than {detail} MB",
    "length": "writes more than {detail} characters",
    "depth": "is nested too deeply, or calls itself without an end",
    "fails": "fails: {detail}",
}


class ChatError(ValueError):
    """A conversation that a template makes no text of.

    Args:
        why: an entry of WHY.
        detail: what more there is to say.
    """

    def __init__(self, why: str, detail: str) -> None:
        self.why, self.detail = why, f"{detail:.300}"
        super().__init__(f"the chat template {WHY[why].format(detail=self.detail)}")


@dataclass(frozen=True)
class ChatTemplate:
    """A chat template.

    Args:
        source: in Jinja.
        tokens: special tokens that it may name, such as ("bos_token", "<s>").

    Raises:
        ValueError: the source has no or more than LARGEST_TEMPLATE characters, or something is no text.
    """

    source: str
    tokens: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for part in (self.source, *(part for token in self.tokens for part in token)):
            check_text(part, "chat_template")
        if not 0 < len(self.source) <= LARGEST_TEMPLATE:
            raise ValueError(
                f"chat_template has {len(self.source):,} characters; it must have 1 to {LARGEST_TEMPLATE:,}"
            )

    @classmethod
    def of(cls, source: str, named: Mapping[str, str]) -> "ChatTemplate":
        """Return a template that may name a tokenizer's special tokens, which come by our names of them.

        Raises:
            ValueError: as the template.
        """
        return cls(source, tuple((f"{name[1:-1].lower()}_token", token) for name, token in named.items()))

    def render(self, messages: Messages, *, prompted: bool = True) -> str:
        """Return the text of a conversation, its special tokens spelled out.

        Args:
            messages: (role, text) of each.
            prompted: end with the header of the assistant's answer.

        Raises:
            ChatError: in words, what the template did instead.
        """
        (found,) = self.render_each(((messages, prompted),))
        if isinstance(found, ChatError):
            raise ChatError(found.why, found.detail)
        return found

    @lru_cache(maxsize=MOST_KEPT)  # noqa: B019  a stopped one is not tried again
    def render_each(self, chats: tuple[Chat, ...]) -> tuple[str | ChatError, ...]:
        """Return the text of each conversation, or why there is none."""
        asked = [
            {
                "messages": [{"role": role, "content": text} for role, text in messages],
                "add_generation_prompt": prompted,
            }
            for messages, prompted in chats
        ]
        request = {"template": self.source, "tokens": dict(self.tokens), "chats": asked}
        try:
            answers = _renderer.ask(json.dumps(request).encode() + b"\n")
        except ChatError as error:
            return (error,) * len(chats)
        return tuple(one["text"] if "text" in one else ChatError(**one) for one in answers)


CHATML = ChatTemplate(
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class _Renderer:
    """The process that renders, one request after another; where it died, the next request starts another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: WarmProcess[Answers] | None = None

    def ask(self, request: bytes) -> Answers:
        with self._lock:
            try:
                if self._process is None or not self._process.is_alive:
                    self._process = WarmProcess(COMMAND, lambda pipe: json.loads(pipe.readline()), environment={})
                self._process.send(request)
                return self._process.answer(PATIENCE)
            except (ProcessDiedError, TimeoutError):
                self.end()
                raise ChatError("time", f"{chat_process.MOST_SECONDS:g}") from None
            except OSError as error:
                raise ChatError("fails", str(error.strerror or error)) from None

    def end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


_renderer = _Renderer()
atexit.register(_renderer.end)
