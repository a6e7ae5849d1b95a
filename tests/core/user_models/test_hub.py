"""A name on the hub: told at once where there is no way to it, opened from the cache, and never waited for in vain."""

import socket
import threading
from pathlib import Path

import huggingface_hub
import pytest

from tests.helpers.open_checkpoints import cached, written
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.user_models import hub as module
from transformer_core.user_models.hub import Fetching, NoHubError, forget_fetched, hub_answers, open_from_hub
from transformer_core.user_models.store import OpenedModels


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenedModels:
    """An empty shelf, and an empty cache of the hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(module, "hub_answers", lambda: False)
    real = huggingface_hub.snapshot_download

    def here(name: str, **options):
        return real(name, cache_dir=tmp_path / "home" / "hub", **options)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", here)
    return OpenedModels(tmp_path / "shelf")


def ended(fetching: Fetching) -> Fetching:
    """Wait until nothing is on its way."""
    for thread in threading.enumerate():
        if thread.name == "fetching":
            thread.join(60)
    assert fetching.seconds is None
    return fetching


def test_a_name_in_the_cache_is_opened_with_no_network(shelf, tmp_path) -> None:
    snapshot = cached(tmp_path / "home", "someone/tiny")
    written("BertModel", snapshot)
    fetching = Fetching()
    fetching.start(shelf, "someone/tiny", "tiny")
    assert ended(fetching).error is None
    opened = shelf.all()["tiny"]
    assert (opened.origin, opened.asked, opened.folder) == ("hub", "someone/tiny", snapshot)
    assert not opened.fetched
    forget_fetched(opened)
    assert snapshot.is_dir()


def test_without_a_way_to_the_hub_it_is_told_and_nothing_is_fetched(shelf, monkeypatch) -> None:
    monkeypatch.setattr(module, "load_from_hub", lambda *_, **__: pytest.fail("there is no way to it"))
    fetching = Fetching()
    fetching.start(shelf, "someone/other", "other")
    assert isinstance(ended(fetching).error, NoHubError)
    assert shelf.all() == {}


@pytest.mark.parametrize("asked", ["", "../x", "a/b/c", "a b", "https://x.y/z", "x" * 99, "我的"])
def test_a_name_that_is_none_is_told(shelf, asked) -> None:
    with pytest.raises(BundleError, match="must be NAME or OWNER/NAME"):
        open_from_hub(shelf, asked, "x")


def test_what_was_fetched_in_vain_is_deleted_and_what_was_there_stays(shelf, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "hub_answers", lambda: True)

    def fetch(name: str, **_):
        cached(tmp_path / "home", name)
        raise BundleError("too new")

    monkeypatch.setattr(module, "load_from_hub", fetch)
    with pytest.raises(BundleError, match="too new"):
        open_from_hub(shelf, "someone/new", "new")
    assert list((tmp_path / "home" / "hub").iterdir()) == []
    cached(tmp_path / "home", "someone/old")
    with pytest.raises((BundleError, FileExistsError)):
        open_from_hub(shelf, "someone/old", "old")
    assert [path.name for path in (tmp_path / "home" / "hub").iterdir()] == ["models--someone--old"]


def test_one_at_a_time_and_nobody_waits_for_ever(shelf, monkeypatch) -> None:
    comes = threading.Event()
    monkeypatch.setattr(module, "open_from_hub", lambda *_: comes.wait())
    fetching = Fetching()
    fetching.start(shelf, "a", "a")
    with pytest.raises(BundleError, match="a is on its way; one model at a time"):
        fetching.start(shelf, "b", "b")
    fetching.give_up_if_late()
    assert fetching.seconds is not None
    monkeypatch.setattr(module, "MOST_SECONDS", 0.0)
    fetching.give_up_if_late()
    assert fetching.seconds is None
    assert "has taken more than 0 seconds" in str(fetching.error)
    comes.set()
    assert "has taken more than 0 seconds" in str(ended(fetching).error), "what comes late is ignored"


def test_whatever_goes_wrong_in_the_thread_is_told(shelf, monkeypatch) -> None:
    def fail(*_) -> None:
        raise KeyError("x")

    monkeypatch.setattr(module, "open_from_hub", fail)
    fetching = Fetching()
    fetching.start(shelf, "a", "a")
    assert str(ended(fetching).error) == "a cannot be opened: KeyError"


def test_whether_the_hub_answers_is_known_in_time(monkeypatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{port}")
        assert hub_answers()
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://hub.invalid")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        assert hub_answers()
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        assert not hub_answers()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    assert not hub_answers()
    never = threading.Event()
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: never.wait() and socket.socket())
    assert not hub_answers(0.0), "though it hangs"
    never.set()
