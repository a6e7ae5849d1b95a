"""Chat templates come with checkpoints: from each place where there is one, and with what we save."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import transformers

from tests.helpers.bundles import refused, rewrite
from tests.helpers.chats import TEMPLATES, chat_model
from tests.helpers.gguf import write_gguf
from tests.helpers.open_checkpoints import written
from transformer_core.bundle import save
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import has_chat, save_hf
from transformer_core.text.chat import LARGEST_TEMPLATE
from transformer_core.user_models.store import unpack

ASKED = (("user", "A glass?"),)
SAYS = "{% for message in messages %}{{ bos_token }}{{ message.content }}{% endfor %}"
OTHER = "{{ messages[0].content }}"
NAMED = [{"name": "tool_use", "template": OTHER}, {"name": "default", "template": SAYS}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny Llama of theirs."""
    written("LlamaForCausalLM", tmp_path / "tiny")
    return tmp_path / "tiny"


def say(folder: Path, template: object) -> None:
    """Write a chat template and a special token into tokenizer_config.json."""
    values = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "[CLS]", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(values), encoding="utf-8")


@pytest.mark.parametrize("template", [SAYS, NAMED], ids=["text", "list"])
def test_the_template_of_a_folder_is_that_of_its_tokenizer(folder: Path, template: object) -> None:
    say(folder, template)
    assert has_chat(folder)
    chat = load(folder).chat
    assert chat is not None
    assert chat.render(ASKED) == "[CLS]A glass?"
    (folder / "chat_template.jinja").write_text(OTHER, encoding="utf-8")  # where newer versions write it
    chat = load(folder).chat
    assert chat is not None
    assert chat.render(ASKED) == "A glass?"


@pytest.mark.parametrize(
    "template", [None, [], [{"name": "tool_use", "template": OTHER}]], ids=["none", "empty", "one"]
)
def test_a_folder_without_a_template_has_none(folder: Path, template: object) -> None:
    say(folder, template)
    assert load(folder).chat is None
    assert not has_chat(folder)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({"default": SAYS}, "chat_template={'default'"),
        ([1], "chat_template=[1] must be a text"),
        ([{"name": "default", "template": 1}], "chat_template=1 must be a text"),
        ("a" * (LARGEST_TEMPLATE + 1), f"it must have 1 to {LARGEST_TEMPLATE:,}"),
    ],
    ids=["object", "numbers", "number", "long"],
)
def test_what_is_no_template_is_refused(folder: Path, template: object, why: str) -> None:
    say(folder, template)
    refused(folder, why)


def test_a_template_beside_a_tokenizer_is_taken_out_of_a_zip_and_no_link_is_followed(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(OTHER, encoding="utf-8")
    packed = Path(shutil.make_archive(str(folder), "zip", folder))
    assert "chat_template.jinja" not in unpack(packed, folder.parent / "out")
    assert has_chat(folder.parent / "out")
    (folder / "chat_template.jinja").unlink()
    os.symlink(folder.parent / "out" / "chat_template.jinja", folder / "chat_template.jinja")
    refused(folder, "chat_template.jinja is a link")
    assert not has_chat(folder)


def test_a_gguf_files_template_knows_its_special_tokens(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", "gemma3", chat=TEMPLATES["gemma"])
    assert has_chat(tmp_path / "tiny.gguf")
    chat = load(tmp_path / "tiny.gguf", device="cpu").chat
    assert chat is not None
    assert chat.render((("user", "ab"),)) == "<bos><turn>user\nab</turn>\n<turn>model\n"
    write_gguf(tmp_path / "mute.gguf", "gemma3")
    assert load(tmp_path / "mute.gguf", device="cpu").chat is None


def test_a_bundle_keeps_its_template(tmp_path: Path) -> None:
    bundle = chat_model(TEMPLATES["llama"])
    save(bundle, tmp_path / "speaker")
    assert has_chat(tmp_path / "speaker")
    assert load(tmp_path / "speaker").chat == bundle.chat
    for chat in (1, {"source": 1, "tokens": []}, {"source": SAYS, "tokens": [["bos_token"]]}, {"source": SAYS}):
        rewrite(tmp_path / "speaker", chat=chat)
        refused(tmp_path / "speaker", "config.json: chat: ")
    save(replace(bundle, chat=None), tmp_path / "speaker")
    assert load(tmp_path / "speaker").chat is None


def test_the_library_reads_the_template_that_we_write_for_it(tmp_path: Path) -> None:
    saved = chat_model(TEMPLATES["mistral"], positions="learned", norm_order="pre", activation="gelu_tanh")
    save_hf(saved, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert saved.chat is not None
    chat = [{"role": "user", "content": "A glass?"}]
    assert theirs.apply_chat_template(chat, tokenize=False) == saved.chat.render(ASKED) == "<s>[INST]A glass?[/INST]"
