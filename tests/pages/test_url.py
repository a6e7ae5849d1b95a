"""Sliders and switches in a link: kept, bounded on the server, and refused in words."""

import pytest
from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from pages.ui.url import slide, switch

    whole = slide("length", 2, 64, name="length", default=16)
    part = slide("rate", 0.0, 1.0, name="rate", default=0.5, step=0.05)
    on = switch("scaled", name="scaled", default=True)
    st.markdown(f"{whole!r} {part!r} {on!r}")


def opened(**query: str) -> AppTest:
    app = AppTest.from_function(page)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def test_defaults_stay_out_of_the_link() -> None:
    app = opened()
    assert app.markdown[0].value == "16 0.5 True"
    assert not dict(app.query_params)


def test_a_link_sets_and_a_hand_moves() -> None:
    app = opened(length="32", rate="0.25", scaled="off")
    assert app.markdown[0].value == "32 0.25 False"
    app.slider[0].set_value(64).run()
    app.toggle[0].set_value(True).run()
    assert app.markdown[0].value == "64 0.25 True"
    assert "64" in app.query_params["length"]
    assert "scaled" not in app.query_params


@pytest.mark.parametrize("asked", ["65", "-3", "x", "nan", "inf", "1e999", "", "[a](https://example.org)", "9" * 400])
def test_a_number_that_cannot_be_is_refused_in_words(asked: str) -> None:
    app = opened(length=asked)
    assert not app.exception
    assert app.markdown[0].value == "16 0.5 True"
    assert "2 … 64" in app.toast[0].value
    assert "](" not in app.toast[0].value


def test_a_switch_that_is_neither_on_nor_off_is_as_it_was() -> None:
    assert opened(scaled="perhaps").markdown[0].value == "16 0.5 True"
