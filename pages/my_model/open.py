"""Open a model: by its name on the hub, from an uploaded zip, or from a folder on this machine."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import streamlit as st

from pages.kit.asking import forget_answers
from pages.kit.controls import Choice, Text
from pages.kit.glossary import show_prose
from pages.kit.models import forget_models, model_folders, opened_models, prefer_model, room
from pages.kit.refusals import in_own_words
from pages.kit.runs import refuse_read_only
from pages.kit.uploads import let_go, upload
from pages.kit.url import forget, set_choice
from pages.kit.waiting import watch
from pages.language import plain, section, t
from pages.serving.limits import may_read, readable_folder
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import ARCHITECTURES, SUPPORTED
from transformer_core.trial import try_model
from transformer_core.untrusted.archives import MB
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.user_models.hub import MOST_BYTES as MOST_FETCHED
from transformer_core.user_models.hub import MOST_SECONDS, Fetching, NoHubError
from transformer_core.user_models.store import LONGEST_NAME, MOST_PACKED, Opened, name_from

LONGEST_ASKED = 200
NAME = "my_model_name"


@lru_cache(maxsize=1)
def fetching() -> Fetching:
    """Return the download from the hub, one model at a time for the whole server."""
    return Fetching()


def _switch_to(name: str) -> None:
    """Choose a model that was just opened, here and on every page that can show it."""
    forget_models()
    forget_answers()
    prefer_model(name)
    set_choice("model", name)
    let_go(_key("zip"))
    state = st.session_state
    state.my_model_opened = name
    state.my_model_round = state.get("my_model_round", 0) + 1  # new keys, so that the fields are empty


def _say(error: BundleError) -> None:
    st.error(_words(error), icon=":material/error:")


def _words(error: BundleError) -> str:
    if isinstance(error, NoHubError):
        return t("my_model.no_hub")
    cause = error.__cause__
    if type(cause).__name__ in ("RepositoryNotFoundError", "GatedRepoError"):
        return t("my_model.not_there")
    return plain(in_own_words(str(error)))


def _key(name: str) -> str:
    return f"my_model_{name} {st.session_state.get('my_model_round', 0)}"


def _choose_name(usual: str, about: str) -> str:
    """Show the field for the model's name; another file or folder begins with another default."""
    if st.session_state.setdefault("my_model_about", about) != about:
        forget(NAME)
        st.session_state.my_model_about = about
    return Text[str](NAME, usual, label="my_model.name", most=LONGEST_NAME).show().strip() or usual


def _open_now(act: Callable[[], Opened]) -> None:
    """Open what lies on this machine, and choose it."""
    try:
        with st.spinner(t("my_model.opening")):
            opened = act()
    except BundleError as error:
        _say(error)
        return
    _switch_to(opened.name)
    st.rerun()


def _from_hub() -> None:
    asked = st.text_input(
        t("my_model.hub_name"),
        key=_key("hub"),
        max_chars=LONGEST_ASKED,
        placeholder="sentence-transformers/all-MiniLM-L6-v2",
        help=section("my_model", "hub").format(most=MOST_FETCHED >> 30),
    )
    asked = (asked or "").strip().removeprefix("hf:")
    name = _choose_name(name_from(asked), asked) if asked else ""
    cannot = not asked or fetching().seconds is not None
    if st.button(t("my_model.open"), type="primary", icon=":material/cloud_download:", disabled=cannot):
        try:
            fetching().start(opened_models(), asked, name, taken=model_folders())
        except BundleError as error:
            _say(error)
            return
        st.session_state.my_model_asked = (asked, name)
        st.rerun()


def _from_zip() -> None:
    given = upload(
        t("my_model.zip"), "zip", most_mb=MOST_PACKED // MB, key=_key("zip"), help=section("my_model", "zip")
    )
    if given is None:
        forget(NAME)
        return
    name = _choose_name(name_from(given.name), given.file_id)
    if st.button(t("my_model.open"), type="primary", icon=":material/unarchive:"):
        _open_now(lambda: opened_models().take_zip(given, name, asked=given.name, taken=model_folders()))


def _from_folder() -> None:
    if not readable_folder():
        st.info(t("my_model.no_folder"), icon=":material/folder_off:")
        return
    path = st.text_input(t("my_model.path"), key=_key("path"), max_chars=4_096, help=section("my_model", "folder"))
    path = (path or "").strip()
    if not path:
        return
    try:
        place = Path(path).expanduser().resolve()
        allowed = may_read(place)
    except (OSError, ValueError, RuntimeError):
        place, allowed = Path(), False
    if not allowed:
        st.error(t("my_model.not_here"), icon=":material/block:")
        return
    name = _choose_name(name_from(path), path)

    def take() -> Opened:
        try_model(load(place, device="cpu"))
        return opened_models().take_note(Opened(name, "folder", path, place), taken=model_folders())

    if st.button(t("my_model.open"), type="primary", icon=":material/folder_open:"):
        _open_now(take)


WAYS = {"hub": _from_hub, "zip": _from_zip, "folder": _from_folder}
FROM = Choice("my_model_from", tuple(WAYS), label="my_model.from", words="my_model.from_{}")


def _follow_download() -> None:
    """Show the progress of a download, and choose the model that this person asked for once it is here."""
    waited, there = st.session_state.get("my_model_asked"), fetching()
    on_its_way, own = there.seconds is not None, (there.asked, there.name) == waited
    if waited is not None and not (on_its_way and own):
        del st.session_state.my_model_asked
        if own and there.error is not None:
            st.session_state.my_model_error = _words(there.error)
        elif waited[1] in opened_models().all():
            _switch_to(waited[1])
    if not on_its_way:
        return

    def is_over() -> bool:
        fetching().give_up_if_late()
        return fetching().seconds is None

    def show_progress() -> None:
        seconds = fetching().seconds or 0.0
        asked, most = plain(fetching().asked), f"{MOST_SECONDS / 60:.0f}"
        st.info(
            t("my_model.on_its_way", name=asked, seconds=f"{seconds:.0f}", most=most), icon=":material/downloading:"
        )

    watch(is_over, show_progress, key="fetching")


def show_opening() -> None:
    """Show the ways to open a model; call it before the list of models, which then has the new one chosen."""
    _follow_download()
    error = st.session_state.pop("my_model_error", None)
    if error:
        st.error(error, icon=":material/error:")
    if name := st.session_state.pop("my_model_opened", None):
        st.success(t("my_model.opened", name=plain(name)), icon=":material/check_circle:")
    if not refuse_read_only():
        WAYS[FROM.show()]()
    with st.expander(t("my_model.supported"), icon=":material/rule:"):
        st.markdown("\n".join(f"- **{family}**: {', '.join(kinds)}" for family, kinds in SUPPORTED.items()))
        show_prose(section("my_model", "supported").format(gguf=", ".join(ARCHITECTURES)), small=True)
    st.caption(t("my_model.rule", most=room().models, size=f"{room().size / (1 << 30):.3g}", zip=MOST_PACKED // MB))
