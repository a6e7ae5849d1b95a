"""Files that visitors bring: how long they stay, how much memory they may take, and when it is free again.

Streamlit holds each file whole, bounds each alone, and keeps those of a visitor who has gone until another one goes; a
widget's file it forgets when the page changes, so the session keeps it by the widget's key.
"""

import re

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from pages.language import plain, t
from pages.serving.inside_streamlit import is_session, remove_uploaded, uploaded_files
from pages.serving.limits import Limits, limits
from transformer_core.untrusted.archives import MB

REFUSED = "application/x-refused"
MOST_OF_HEAD = 4_096
FRAMING = MB  # what a browser sends around a file
MOST_FILES = 64  # of a visitor, however small


def _kept() -> dict[str, UploadedFile]:
    return st.session_state.setdefault("files", {})


def uploaded(key: str) -> UploadedFile | None:
    """Return the file that a person brought to the widget of this key, on this visit of its page or before."""
    return _kept().get(key)


def let_go(key: str) -> None:
    """Forget a file, as once it was read there is no need to keep it."""
    _kept().pop(key, None)


def _remove(key: str) -> None:
    """Forget a file and free its memory; in a callback."""
    file = _kept().pop(key, None)
    if file is not None:
        remove_uploaded(file.file_id)


def _take(key: str, widget: str) -> None:
    """Keep what a person has just brought, in place of the file before; in a callback."""
    given = st.session_state[widget]
    _remove(key)
    if given is not None and given.type != REFUSED:
        _kept()[key] = given


def upload(
    label: str, kinds: str | list[str], *, key: str, most_mb: int, help: str | None = None
) -> UploadedFile | None:
    """Let a person bring a file, and say in words where there is no room for it; after another page it is still here.

    Args:
        label: above the field.
        kinds: endings of its name.
        key: of the widget.
        most_mb: of this kind of file, in MB.
        help: for the sign beside the label.

    Returns:
        The file, None where there is none or where it was refused.
    """
    bounds = limits()
    most = min(most_mb, bounds.upload_mb)
    widget = f"{key} again" if st.session_state.get("lost") else key  # the browser would show a file that is gone
    given = st.file_uploader(
        label, kinds, max_upload_size=most, key=widget, help=help, on_change=_take, args=(key, widget)
    )
    if given is not None and given.type == REFUSED:
        st.error(
            t("upload.refused", session=f"{bounds.session_uploads_mb:,}", most=f"{bounds.all_uploads_mb:,}"),
            icon=":material/block:",
        )
    file = uploaded(key)
    if given is None and file is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"kept_file_{key}"):
            st.markdown(t("upload.kept", name=plain(file.name)), width="content")
            said, icon = t("upload.remove"), ":material/close:"
            st.button(said, icon=icon, type="tertiary", key=f"remove {key}", on_click=_remove, args=(key,))
    return file


async def _name_alone(receive: Receive) -> str:
    """Hear a browser to the end, as it shows no answer before, and return the name of the file that it sends."""
    head, more = b"", True
    while more:
        message = await receive()
        head = (head + message.get("body", b""))[:MOST_OF_HEAD]
        more = message.get("more_body", False)
    name = re.search(rb'filename="([^"\r\n]*)"', head)
    return name[1].decode(errors="replace") if name else ""


class UploadBounds:
    """Refuse a file for which a visitor, or the server, has no room; the page then says so (`upload`)."""

    def __init__(self, app: ASGIApp, *, bounds: Limits) -> None:
        """Stand before an app."""
        self._app = app
        self._bounds = bounds
        self._coming: dict[str, tuple[str, int]] = {}  # session and bytes of each file under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on what has room."""
        asked = re.search(r"/_stcore/upload_file/([^/]+)/([^/]+)$", scope.get("path", ""))
        if asked is None or scope["type"] != "http" or scope["method"] != "PUT":
            return await self._app(scope, receive, send)
        if self._bounds.read_only:
            return await Response(status_code=403)(scope, receive, send)
        session, file = asked.groups()
        length = Headers(scope=scope).get("content-length", "")
        if not re.fullmatch("[0-9]{1,15}", length):
            return await Response(status_code=411)(scope, receive, send)
        size = int(length)
        files = uploaded_files()
        if size > self._bounds.upload_mb * MB + FRAMING or len(files.file_storage.get(session, ())) >= MOST_FILES:
            return await Response(status_code=413)(scope, receive, send)
        if is_session(session) and not self._has_room(session, size):
            name = await _name_alone(receive)
            files.add_file(session, UploadedFileRec(file_id=file, name=name, type=REFUSED, data=b""))
            return await Response(status_code=204)(scope, receive, send)
        self._coming[file] = (session, size)
        try:
            await self._app(scope, receive, send)
        finally:
            self._coming.pop(file, None)

    def _has_room(self, session: str, size: int) -> bool:
        kept = uploaded_files().file_storage
        held = {one: sum(len(file.data) for file in files.values()) for one, files in kept.items()}
        for one, coming in self._coming.values():
            held[one] = held.get(one, 0) + coming
        fits = held.get(session, 0) + size <= self._bounds.session_uploads_mb * MB + FRAMING
        return fits and sum(held.values()) + size <= self._bounds.all_uploads_mb * MB + FRAMING
