"""The part Chat and a GPT that is asked as a chat: tokens by role, what a template refuses, a model without one."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.kit.asking import ask
from pages.kit.models import MORE_MODELS, forget_models, open_bundle
from pages.language import plain, words
from pages.tokens.chat import HUE_OF_TEMPLATE, HUES, MOST_MESSAGES
from tests.helpers.chats import TEMPLATES, chat_model
from tests.helpers.pages import repeats, run, told
from transformer_core.analysis.gpt.next_token import expected
from transformer_core.analysis.words.chat import chat_tokens
from transformer_core.bundle import save
from transformer_core.prompt import Prompt
from transformer_core.text.chat import Messages

TEXT = "Why is the sky blue?"
Opened = Callable[..., AppTest]


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Opened]:
    """Open a page with a chat model, which has this template, among the models."""

    def opened(template: str, page: str = "tokens", **query: str) -> AppTest:
        save(chat_model(template), tmp_path / "speaker")
        forget_models()
        part = {"tokens_part": "chat"} if page == "tokens" else {}
        return run(page, **{"model": "speaker", "text": TEXT, **part, **query})

    monkeypatch.setenv(MORE_MODELS, str(tmp_path))
    yield opened
    forget_models()


def rows(app: AppTest) -> list[dict[str, Any]]:
    """Return the lines of tokens that the page shows."""
    (chips,) = (one.proto for one in app.get("bidi_component") if one.proto.component_name == "vitrine.chips")
    return json.loads(chips.json)["rows"]


def ids_of(app: AppTest) -> list[int]:
    """Return the ids of all tokens shown."""
    return [token["id"] for row in rows(app) for token in row["tokens"]]


def rendered(messages: Messages, *, prompted: bool = True) -> list[int]:
    """Return the ids that the library makes of a conversation."""
    return list(chat_tokens(bundle=open_bundle("speaker"), messages=messages, prompted=prompted).cut.ids)


def test_a_conversation_is_shown_by_role_and_messages_are_added_and_taken_out(chat: Opened) -> None:
    app = chat(TEMPLATES["llama"])
    first = ("system", words("en")["tokens.chat_system"]), ("user", TEXT)
    assert ids_of(app) == rendered(first)
    assert [row["hue"] for row in rows(app)] == [HUE_OF_TEMPLATE, HUES["system"], HUES["user"], HUE_OF_TEMPLATE]
    assert [row["title"].split(" ")[0] for row in rows(app)] == ["Beginning", "0", "1", "Header"]
    assert "".join(t["label"] for t in rows(app)[2]["tokens"] if not t["framed"]).replace("␣", " ") == TEXT
    assert all(token["framed"] for token in rows(app)[0]["tokens"] + rows(app)[-1]["tokens"])
    app.button(key="tokens_add").click().run()
    app.text_input(key="tokens_said2@tokens").set_value("Light.").run()
    assert ids_of(app) == rendered((*first, ("assistant", "Light.")))
    app.toggle(key="tokens_prompted@tokens").set_value(False).run()
    assert ids_of(app) == rendered((*first, ("assistant", "Light.")), prompted=False)
    app.button(key="tokens_remove0").click().run()
    assert ids_of(app) == rendered((first[1], ("assistant", "Light.")), prompted=False)
    link = {name: str(value) for name, value in app.query_params.items()}
    assert ids_of(run("tokens", **{name: value.strip("[]'") for name, value in link.items()})) == ids_of(app)


def test_what_a_template_moves_is_said_and_what_it_refuses_is_said_in_both_languages(chat: Opened) -> None:
    app = chat(TEMPLATES["mistral"], tokens_messages=str(MOST_MESSAGES))
    assert words("en")["tokens.chat_open_places"] in told(app)
    assert "Cannot be told" in [row["title"] for row in rows(app)]
    for language in ("en", "zh"):
        app = chat(TEMPLATES["mistral"], tokens_role1="assistant", lang=language)
        said = words(language)["chat_template.refuses"].format(detail="Roles must alternate")
        assert [warning.value for warning in app.warning] == [plain(said)]
        assert not app.exception


def test_a_template_that_refuses_a_system_begins_without_one(chat: Opened) -> None:
    refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('No system') }}{% endif %}"
    app = chat(refuses + TEMPLATES["chatml"])
    assert not app.warning
    assert ids_of(app) == rendered((("user", TEXT), ("assistant", words("en")["tokens.chat_assistant"])))


def test_a_model_without_a_template_gets_one_that_is_said_not_to_be_its_own(chat: Opened) -> None:
    app = chat(TEMPLATES["qwen"], model="sentiment")
    assert "not this model’s own" in told(app)
    assert "Models here that have one: speaker" in told(app)
    app.button(key="offer").click().run()
    assert "not this model’s own" not in told(app)
    assert ids_of(app)[0] == open_bundle("speaker").tokenizer.id_of("<|im_start|>")


def test_a_gpt_is_asked_as_it_was_trained_and_the_script_does_the_same(chat: Opened) -> None:
    app = chat(TEMPLATES["gemma"], "gpt", chat="on")
    bundle = open_bundle("speaker")
    assert bundle.chat is not None
    text = bundle.chat.render((("user", TEXT),))
    assert text == f"<s><turn>user\n{TEXT}</turn>\n<turn>model\n"
    assert text.strip() in [code.value for code in app.code]
    encoding = bundle.tokenizer.encode(text, add_special=False)
    assert f"{len(encoding)} tokens" in told(app)
    assert encoding.ids.count(bundle.tokenizer.bos_id) == 1
    prompt = Prompt(bundle, text, len(encoding), add_special=False)
    asked = ask(expected, prompt=prompt, place=len(encoding), top=3)
    assert "add_special=False" in asked.script
    repeats(asked.script, asked.arrays)
    found = ask(chat_tokens, bundle=bundle, messages=(("user", TEXT),), prompted=True)
    repeats(found.script, found.arrays)
    app.toggle(key="chat@gpt").set_value(False).run()
    assert f"{len(bundle.tokenizer.encode(TEXT))} tokens" in told(app)
