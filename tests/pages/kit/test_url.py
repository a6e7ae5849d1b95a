"""Sliders and switches in a link: kept, bounded on the server, and refused in words."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.kit.url import LONGEST_LINK, in_bytes


def page() -> None:
    import streamlit as st

    from pages.kit.controls import Slider, Switch

    whole = Slider("length", 2, 64, 16, label=lambda _: "length").show()
    part = Slider("rate", 0.0, 1.0, 0.5, step=0.05, kind=float, label=lambda _: "rate").show()
    on = Switch("scaled", True, label=lambda _: "scaled").show()
    st.markdown(f"{whole!r} {part!r} {on!r}")


def opened(script: Callable[[], None] = page, **query: str) -> AppTest:
    app = AppTest.from_function(script)
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


def writing() -> None:
    import streamlit as st

    from pages.kit.controls import Text
    from pages.kit.url import arrive

    arrive("en")
    for name in ("one", "two", "three", "four") if st.session_state.get("page") != "other" else ("five",):
        Text(name, "", label=lambda _: "box", height=80).show()


def test_a_link_has_at_most_so_many_bytes_and_names_what_it_has_no_room_for() -> None:
    app = AppTest.from_function(writing).run()
    for number, box in enumerate(("one@", "two@", "three@", "four@")):
        app.text_area(key=box).set_value("好" * (150 + number)).run()
    said = dict(app.query_params)
    assert said.keys() == {"one", "two", "without"}
    assert said["without"] == "three.four"
    assert 2_900 < in_bytes(said) <= LONGEST_LINK == 4_000
    assert app.text_area(key="four@").value == "好" * 153, "the page has it all the same"
    opened = AppTest.from_function(writing)
    opened.query_params.update(said)
    opened.run()
    assert "three, four" in opened.toast[0].value
    assert not opened.run().toast
    app.text_area(key="one@").set_value("").run()
    assert app.query_params["without"] == "four", "what has room again is in it again"
    app.session_state["page"] = "other"
    app.run()
    app.text_area(key="five@other").set_value("好" * 300).run()
    assert app.query_params["five"] == "好" * 300, "what another page shows gives way"


def test_what_a_link_brought_for_another_page_gives_way_too_and_is_there_when_that_is_shown_again() -> None:
    app = AppTest.from_function(writing)
    app.query_params["one"] = "好" * 300
    app.run()
    app.session_state["page"] = "other"
    app.run()
    app.text_area(key="five@other").set_value("坏" * 300).run()
    assert dict(app.query_params) == {"five": "坏" * 300}
    app.session_state["page"] = ""
    app.run()
    assert app.text_area(key="one@").value == "好" * 300


def growing() -> None:
    import streamlit as st

    from pages.kit.controls import Choice, Slider

    count = st.session_state.get("count", 5)
    options = {str(place): f"word {place}" for place in range(count)}
    token = Choice("token", options, label=lambda _: "token", form="list").show()
    way = Choice("way", ("mask", "zero"), label=lambda _: "way").show()
    place = Slider("place", 0, count - 1, 0, label=lambda _: "place").show()
    few = Choice("few", (2, 4, 8), label=lambda _: "few", default=4, form="steps").show()
    st.markdown(f"{token} {way} {place} {few}")


def test_a_choice_that_goes_with_the_text_falls_back_without_a_word() -> None:
    app = opened(growing, token="4", place="4", way="zero", few="8")
    assert app.markdown[0].value == "4 zero 4 8"
    app.session_state["count"] = 3
    app.run()
    assert app.markdown[0].value == "0 zero 2 8"
    assert not app.toast
    assert "token" not in app.query_params


@pytest.mark.parametrize("missing", [None, ""])
def test_a_choice_that_the_browser_has_lost_is_no_link(missing: str | None) -> None:
    app = opened(growing)
    app.session_state["way@"] = missing
    assert app.run().markdown[0].value == "0 mask 0 4"
    assert not app.toast


@pytest.mark.parametrize(("name", "asked"), [("token", "5"), ("way", "None"), ("place", "5"), ("few", "3")])
def test_what_a_link_asks_for_in_vain_is_said_once(name: str, asked: str) -> None:
    app = opened(growing, **{name: asked})
    assert f"{name} = {asked}" in app.toast[0].value
    assert app.markdown[0].value == "0 mask 0 4"
    assert not app.run().toast
    assert name not in app.query_params


def test_every_control_begins_in_the_browser_with_what_the_server_holds() -> None:
    app = opened(growing, token="4", place="3", way="zero", few="8")
    assert list(app.button_group[0].proto.default) == [1]
    assert list(app.slider[0].proto.default) == [3.0]
    assert app.selectbox[0].proto.default == 4
    assert list(app.select_slider[0].proto.default) == [2.0]
    app = opened(length="32", rate="0.25", scaled="off")
    assert [list(slider.proto.default) for slider in app.slider] == [[32.0], [0.25]]
    assert app.toggle[0].proto.default is False


def grouped() -> None:
    import streamlit as st

    from pages.room import choose_in_groups

    groups = {"How?": {"gates": "Gates", "step": "One step"}, "Why?": {"look": "Where it looks"}}
    st.markdown(choose_in_groups(groups, name="part", default="gates"))


def test_one_option_of_all_groups_is_chosen() -> None:
    app = opened(grouped, part="step")
    assert [app.markdown[0].value, *(group.value for group in app.segmented_control)] == ["step", "step", None]
    app.segmented_control[1].set_value("look").run()
    assert [app.markdown[0].value, *(group.value for group in app.segmented_control)] == ["look", None, "look"]
    assert app.query_params["part"] == "look"
    app.segmented_control[0].set_value("gates").run()
    assert [app.markdown[0].value, *(group.value for group in app.segmented_control)] == ["gates", "gates", None]
    assert "part" not in app.query_params
