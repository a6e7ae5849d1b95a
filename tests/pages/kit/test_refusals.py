"""What the library refuses is said in Chinese on a Chinese page, by messages that the library still has."""

import ast
import re

import pytest

from pages.kit import refusals
from pages.kit.refusals import VALUE, in_own_words
from pages.language import strings, words
from tests.helpers import ROOT
from transformer_core.untrusted.tables import IntakeError, read_table


def message_of(node: ast.expr) -> str:
    """Return a message as it stands in the code, with {} for what is put in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join("{}" if isinstance(part, ast.FormattedValue) else message_of(part) for part in node.values)
    return "{}"


def test_each_message_with_other_words_is_one_of_the_library() -> None:
    calls = (
        node
        for path in (ROOT / "transformer_core").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error")
    )
    there = {re.sub(r"(\{\})+", "{}", message_of(call.args[0])) for call in calls if call.args}
    missing = {key: word for key, word in strings("refused", "en").items() if VALUE.sub("{}", word) not in there}
    assert missing == {}


def test_a_refusal_keeps_its_values_in_chinese_and_any_other_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "language", lambda: "zh")
    monkeypatch.setattr(refusals, "strings", lambda prefix, lang="zh": strings(prefix, lang))
    with pytest.raises(IntakeError) as caught:
        read_table(b"only\nrows\nof one\ncolumn\n", "only", "only", name="my.csv")
    expected = words("zh")["refused.one_column"].format(name="my.csv", column="'only'")
    assert in_own_words(str(caught.value)) == expected
    assert in_own_words("no such message") == "no such message"
    monkeypatch.setattr(refusals, "language", lambda: "en")
    assert in_own_words(str(caught.value)) == str(caught.value)
