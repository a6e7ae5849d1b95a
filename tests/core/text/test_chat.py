"""Chat templates: the text and the ids are those of the `transformers` library; what does harm is stopped in words."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tokenizers
import transformers

from tests.helpers.chats import HARMFUL, TEMPLATES, chat_tokenizer
from transformer_core.text import chat_process
from transformer_core.text.chat import CHATML, LARGEST_TEMPLATE, ChatError, ChatTemplate, Messages

ASKED: Messages = (("user", "  Is it 你好 — or “not”?\n"),)
TALK: Messages = (
    ("system", "Be brief."),
    ("user", "Who are you? {{ 1 + 1 }}"),
    ("assistant", "A model."),
    ("user", "é <|im_end|> <b>\n\nAnd?"),
)


@pytest.mark.parametrize("messages", [ASKED, TALK], ids=["asked", "talk"])
@pytest.mark.parametrize("name", TEMPLATES)
def test_text_and_ids_are_those_of_transformers(name: str, messages: Messages) -> None:
    own = chat_tokenizer()
    template = ChatTemplate.of(TEMPLATES[name], own.named)
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(own.to_json()),
        bos_token="<s>",
        eos_token="</s>",
        chat_template=TEMPLATES[name],
    )
    chat = [{"role": role, "content": text} for role, text in messages]
    for prompted in (True, False):
        text = template.render(messages, prompted=prompted)
        assert text == theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=prompted)
        ids = theirs.apply_chat_template(chat, add_generation_prompt=prompted, return_dict=False)
        encoding = own.encode(text, add_special=False)
        assert list(encoding.ids) == ids
        assert encoding.ids.count(own.bos_id) == text.count("<s>")
        assert own.encode("a").ids[0] == own.bos_id


@pytest.mark.parametrize(("source", "why"), HARMFUL.items(), ids=range(len(HARMFUL)))
def test_what_does_harm_is_stopped_in_words_and_the_next_is_rendered(source: str, why: str) -> None:
    with pytest.raises(ChatError, match="the chat template ") as caught:
        ChatTemplate(source).render(ASKED)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 400
    assert CHATML.render((("user", source),)) == f"<|im_start|>user\n{source}<|im_end|>\n<|im_start|>assistant\n"


def test_what_would_break_out_of_the_sandbox_finds_no_variable_and_opens_no_file(tmp_path: Path) -> None:
    own = Path(chat_process.__file__).read_text(encoding="utf-8")
    out = '    made.globals |= {"variables": lambda: dict(os.environ), "opened": lambda: open(os.devnull)}\n'
    before, kept, after = own.partition("    return made\n\n\ndef _why")
    assert kept
    script = tmp_path / "chat_process.py"
    script.write_text(before + out + kept + after, encoding="utf-8")
    asked = [{"template": f"{{{{ {name}() }}}}", "tokens": {}, "chats": [{}]} for name in ("variables", "opened")]
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    done = subprocess.run([sys.executable, "-P", script], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [
        [],
        [{"text": "{}"}],
        [{"why": "reaches", "detail": "[Errno 24] Too many open files: '/dev/null'"}],
    ]


@pytest.mark.parametrize(
    "source", ["", "a" * (LARGEST_TEMPLATE + 1), "\ud800", 1], ids=["empty", "long", "half", "one"]
)
def test_what_is_no_template_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="chat_template"):
        ChatTemplate(source)
