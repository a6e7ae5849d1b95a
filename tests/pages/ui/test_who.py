"""Who may change what: the browser that made it, an administrator, and at home everybody."""

from http.cookies import SimpleCookie

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from pages.ui import models, who
from pages.ui.link import Link, reading
from tests.helpers.pages import finished


def ask_as(scope: dict, kind: str = "text/html; charset=utf-8") -> SimpleCookie:
    """Ask the middleware for a page and return the cookies that come with it."""
    sent = []

    async def app(_scope, _receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind.encode())]})

    async def send(message) -> None:
        sent.append(message)

    finished(who.GiveKey(app)({"type": "http", "scheme": "http", "headers": [], **scope}, None, send))  # type: ignore
    given = (value.decode() for name, value in sent[0]["headers"] if name == b"set-cookie")
    return SimpleCookie("; ".join(given))


def test_a_browser_gets_a_key_of_its_own_with_its_first_page_and_keeps_it() -> None:
    first, second = ask_as({})["vitrine"], ask_as({})["vitrine"]
    assert first.value != second.value
    assert first["httponly"]
    assert first["samesite"] == "Lax"
    assert not first["secure"]
    assert ask_as({"scheme": "https"})["vitrine"]["secure"]
    assert not ask_as({"headers": [(b"cookie", f"a=b; vitrine={first.value}".encode())]})
    assert ask_as({"headers": [(b"cookie", b"vitrine=made up")]})["vitrine"].value != "made up"
    assert not ask_as({}, kind="application/json")


def test_the_server_knows_a_key_by_its_hash_alone() -> None:
    key = "k" * 32
    assert who.owner_in(f"x=y; vitrine={key}") == who.owner_of(key)
    assert key not in who.owner_of(key)
    assert who.owner_in("vitrine=short") == who.owner_in("") == who.owner_in("x=\x00;;=") == ""


def told_in_a_session() -> None:
    """Say who this session is, as a page."""
    import streamlit as st

    from pages.ui import who

    if "try" in st.session_state:
        st.session_state.tried = who.admit(st.session_state.pop("try"))
    st.session_state.found = (who.visitor(), who.is_admin(), who.may_change("somebody else"))


def found(session: AppTest) -> tuple[str, bool, bool]:
    """Return what a session says it is."""
    return session.run().session_state.found


@pytest.mark.usefixtures("on_a_network")
def test_on_a_network_each_session_is_somebody_and_nobody_changes_what_is_not_theirs() -> None:
    first, second = AppTest.from_function(told_in_a_session), AppTest.from_function(told_in_a_session)
    assert found(first)[0] != found(second)[0]
    assert found(first) == found(first)
    assert found(first)[1:] == (False, False)


def test_at_home_one_person_may_do_all(monkeypatch: pytest.MonkeyPatch) -> None:
    before = config.get_option("server.address")
    config.set_option("server.address", "localhost")
    try:
        assert found(AppTest.from_function(told_in_a_session)) == ("", True, True)
        monkeypatch.setenv("VITRINE_HOSTS", "vitrine.example.org")  # a proxy brings others here
        assert found(AppTest.from_function(told_in_a_session))[1:] == (False, False)
    finally:
        config.set_option("server.address", before)


@pytest.mark.usefixtures("on_a_network")
def test_the_secret_lets_a_session_do_all_and_guessing_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    who._wrong.clear()
    session = AppTest.from_function(told_in_a_session)
    session.session_state["try"] = ""
    assert found(session)[1:] == (False, False)  # no secret is set, so none is right
    monkeypatch.setenv("VITRINE_ADMIN", "a long secret")
    session.session_state["try"] = "a long secret"
    assert found(session)[1:] == (True, True)
    other = AppTest.from_function(told_in_a_session)
    for _ in range(who.MOST_WRONG):
        other.session_state["try"] = "a guess"
        assert found(other)[1:] == (False, False)
    other.session_state["try"] = "a long secret"
    assert found(other)[1:] == (False, False)
    assert found(session)[1:] == (True, True)
    who._wrong.clear()


def test_on_a_network_a_person_opens_fewer_models_than_at_home(
    on_a_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_PERSON_MODELS", "2")
    with reading(Link({}, "ann")):
        assert (models.room().models, models.room().all_models) == (2, models.MOST_OPENED)


def test_models_in_memory_are_counted_by_their_weights() -> None:
    models.opener.cache_clear()
    sizes = []
    for name in ("lm-rnn", "lm-gru"):
        model = models.open_bundle(name).model
        sizes.append(sum(4 * parameter.numel() for parameter in model.parameters()))
    assert sum(sizes) <= models.opener().cache.currsize < 1.1 * sum(sizes)
    assert models.opener().cache.maxsize == 3_000 << 20
