"""No part of any page opens on an empty screen, and no covered picture tells its answer."""

import re
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.language import words
from tests.helpers.pages import SCREENS, asks, named, run, show_all

PICTURES = ("vega_lite_chart", "bidi_component", "plotly_chart", "metric", "html")


def under_covers(app: AppTest) -> Iterator[object]:
    """Yield every element that lies in a covered picture, at whatever depth."""

    def walk(block: object, inside: bool) -> Iterator[object]:
        for child in getattr(block, "children", {}).values():
            below = inside or "cover_" in str(getattr(getattr(child, "proto", None), "id", ""))
            if inside and not hasattr(child, "children"):
                yield child
            yield from walk(child, below)

    yield from walk(app.main, False)


@pytest.mark.parametrize(("page", "part"), SCREENS)
def test_a_part_opens_on_a_picture_and_tells_nothing_before_it_is_asked_for(page: str, part: str) -> None:
    app = run(page, **named(page, part))
    assert not app.exception
    assert not app.toast
    assert any(app.get(kind) for kind in PICTURES)
    ways = [button for button in app.button if str(button.key).startswith("show_")]
    assert [button.label for button in ways] == [words("en")["try.show"]] * len(asks(app))
    written = [element for element in under_covers(app) if getattr(element, "type", "") in ("markdown", "caption")]
    assert bool(written) <= bool(ways)
    for element in written:
        assert not re.search(r"[0-9a-mo-z]", element.value.lower().replace("\\n", "")), element.value  # type: ignore[attr-defined]
    for element in under_covers(app):
        said = getattr(element.proto, "body", "") if getattr(element, "type", "") == "html" else ""
        assert not re.search("[0-9]%", re.sub("<.*?>", "", said)), said
    for element in under_covers(app):
        assert getattr(element, "type", "") != "metric" or element.value == "–"  # type: ignore[attr-defined]


def test_an_open_picture_stays_open_for_another_text_and_in_a_link() -> None:
    app = run("feed_forward", feed_forward_part="swap", text="A dull film.")
    asks(app)[0].set_value("flips").run()
    assert app.query_params["shown"] == "feed_forward_swap"
    judged = [words("en")["try.right"], words("en")["try.wrong"].partition("{")[0]]
    assert any(said in element.value for said in judged for element in app.markdown)
    app.text_input(key="text@feed_forward").set_value("A lovely film.").run()
    assert asks(app)[0].value is None
    assert any(words("en")["try.shown"].partition("{")[0] in element.value for element in app.markdown)
    assert not any(said in element.value for said in judged for element in app.markdown)
    linked = run("feed_forward", feed_forward_part="swap", text="A lovely film.", shown="feed_forward_swap")
    assert [element.value for element in linked.markdown] == [element.value for element in app.markdown]
    app.button(key="hide_feed_forward_swap").click().run()
    assert "shown" not in app.query_params
    assert show_all(app).query_params["shown"] == "feed_forward_swap"


@pytest.mark.parametrize("shown", ["<b>", "a" * 5_000, "nosuchpart.", "\u202e"])
def test_odd_names_of_open_pictures_are_survived(shown: str) -> None:
    app = run("norm", norm_part="depth", shown=shown)
    assert not app.exception
    assert not app.error
