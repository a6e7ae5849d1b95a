"""The part Chat: the tokens of a conversation by role, what a template refuses, and a model that has none."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.kit.asking import ask
from pages.kit.models import MORE_MODELS, forget_models, open_bundle
from pages.language import words
from tests.helpers.chats import HARMFUL, TEMPLATES, chat_model
from tests.helpers.pages import repeats, run, told
from transformer_core.analysis.words.chat import chat_tokens
from transformer_core.bundle import save
from transformer_core.text.chat import Messages

TEXT = "Why is the sky blue?"


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., AppTest]]:
    """Open a page with a chat model, which has a template, among the models."""

    def opened(template: str, page: str = "tokens", **query: str) -> AppTest:
        save(chat_model(template), tmp_path / "speaker")
        forget_models()
        part = {"tokens_part": "chat"} if page == "tokens" else {}
        return run(page, **{"model": "speaker", "text": TEXT, **part, **query})

    monkeypatch.setenv(MORE_MODELS, str(tmp_path))
    yield opened
    forget_models()


def lines(app: AppTest) -> list[dict[str, Any]]:
    """Return the lines of tokens that the component gets."""
    import json

    (chips,) = (one.proto for one in app.get("bidi_component") if one.proto.component_name.endswith("chips"))
    return json.loads(chips.json)["rows"]


def test_x(chat):
    app = chat(TEMPLATES["llama"])
    print(told(app)); print(app.exception)
    for one in app.get("bidi_component"): print(one.proto.component_name, str(one.proto)[:600])
    assert 0
