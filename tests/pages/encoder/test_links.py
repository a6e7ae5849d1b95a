"""The encoder page under odd links and odd texts: words on the page, never a stack trace."""

import pytest

from tests.pages.encoder.test_page import TEXT, part
from tests.pages.running import asks, run


@pytest.mark.parametrize("other", ["", "  ", "x" * 3_000, TEXT, "😀", "مرحبا", "这部电影很好看", "[PAD] [MASK]"])
def test_any_second_sentence_is_survived(other: str) -> None:
    app = part("edit")
    app.text_input(key="encoder_other@encoder").set_value(other).run()
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize(
    "query",
    [
        {"encoder_part": "x"},
        {"encoder_part": "sum", "encoder_of": "7"},
        {"encoder_part": "tokens", "encoder_steps": "1e9", "encoder_baseline": "noise", "encoder_measure": "<b>"},
        {"encoder_part": "sure", "encoder_temperature": "nan"},
        {"encoder_part": "edit", "encoder_other": "[a](https://example.org)"},
    ],
    ids=str,
)
def test_odd_values_in_the_link_are_survived(query: dict[str, str]) -> None:
    app = run("encoder", text=TEXT, **query)
    assert not app.exception
    assert "](" not in "".join(toast.value for toast in app.toast)


@pytest.mark.parametrize("text", ["a", "[PAD]", "😀😀", "هذا فيلم جيد", "这部电影很好看。", "good film " * 90])
@pytest.mark.parametrize("name", ["layers", "sum", "tokens", "edit"])
def test_any_text_is_read(name: str, text: str) -> None:
    app = part(name, text=text)
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("name", ["sum", "agree"])
def test_another_sentence_asks_for_another_prediction(name: str) -> None:
    app = part(name)
    asks(app)[0].set_value({"sum": "few", "agree": "close"}[name]).run()
    assert asks(app)[0].value is not None
    app.text_input(key="text@encoder").set_value("A dull film, but I loved the ending.").run()
    assert asks(app)[0].value is None
