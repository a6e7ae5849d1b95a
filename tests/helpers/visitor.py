"""A visitor without a browser: a session of a real server over the socket that browsers use."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

TRIGGER = "trigger_value"
KINDS = {  # how a widget's value is called in a message
    "button": TRIGGER,
    "checkbox": "bool_value",
    "popover": "bool_value",
    "text_area": "string_value",
    "text_input": "string_value",
}


def socket_of(address: str, *, origin: str | None = None, cookie: str = "") -> connect:
    """Return the connection of a new visitor, to be entered.

    Args:
        address: of the server.
        origin: of the page that opens it; by default the server's own.
        cookie: header of the browser.
    """
    stream = address.replace("http", "ws") + "/_stcore/stream"
    sent = {"Cookie": cookie} if cookie else {}
    known: Any = {"subprotocols": ["streamlit"], "additional_headers": sent, "max_size": 1 << 26, "open_timeout": 60}
    return connect(stream, origin=Origin(origin or address), **known)


async def until(socket: ClientConnection, kind: str) -> list[ForwardMsg]:
    """Return what comes up to a message of one kind."""
    came: list[ForwardMsg] = []
    while not came or came[-1].WhichOneof("type") != kind:
        came.append(ForwardMsg())
        came[-1].ParseFromString(await socket.recv())  # type: ignore[arg-type]
    return came


async def rerun(socket: ClientConnection, page: str = "tokens", query: str = "") -> list[ForwardMsg]:
    """Run a page and return what the server sent until it had run."""
    message = BackMsg()
    message.rerun_script.page_name = page
    message.rerun_script.query_string = query
    await socket.send(message.SerializeToString())
    return await until(socket, "script_finished")


def put_file(address: str, place: str, name: str, data: bytes, **headers: str) -> int:
    """Upload a file as a browser does, and return the status of the answer.

    Args:
        address: of the server.
        place: that a session was told to upload to.
        name, data: of the file.
        headers: of the browser.
    """
    boundary = "part"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = head.encode() + data + f"\r\n--{boundary}--\r\n".encode()
    with urllib.request.urlopen(f"{address}/_stcore/health", timeout=60) as told:
        given = told.headers.get_all("Set-Cookie", [])
    token = next(value for value in given if value.startswith("_streamlit_xsrf=")).partition("=")[2].partition(";")[0]
    sent = {"Content-Type": f"multipart/form-data; boundary={boundary}", "X-Xsrftoken": token} | headers
    sent["Cookie"] = "; ".join(filter(None, (f"_streamlit_xsrf={token}", headers.get("Cookie"))))
    request = urllib.request.Request(f"{address}{urlsplit(place).path}", data=body, headers=sent, method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


async def upload_places(socket: ClientConnection, names: list[str]) -> list[Any]:
    """Ask where files may be uploaded to."""
    message = BackMsg()
    message.file_urls_request.request_id = "1"
    message.file_urls_request.file_names.extend(names)
    await socket.send(message.SerializeToString())
    return list((await until(socket, "file_urls_response"))[-1].file_urls_response.file_urls)


class Visitor:
    """A session that opens a page, changes its widgets and reads what stands there.

    Args:
        socket: of the session.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._page, self.query = "", dict[str, Any]()
        self._set = dict[str, WidgetState]()
        self.came: list[ForwardMsg] = []

    async def open(self, page: str, **query: str) -> None:
        """Open a page with these values in its link."""
        self._page, self.query, self._set = page, query, {}
        await self._run()

    async def set(self, called: str, value: object = True) -> None:
        """Set a widget, or press a button, by its label or key, and wait until the page has run."""
        kind, widget = self._found(called)
        await self._run(kind, widget, value)

    async def _run(self, kind: str = "", widget: str = "", value: object = None) -> None:
        message = BackMsg()
        message.rerun_script.page_name = self._page
        message.rerun_script.query_string = urlencode(self.query, doseq=True)
        states = message.rerun_script.widget_states.widgets
        if widget:
            state = states.add(id=widget)
            if isinstance(value, FileUploaderState):
                state.file_uploader_state_value.CopyFrom(value)
            else:
                setattr(state, KINDS[kind], value)
            self._set = {one.id: one for one in (*self._set.values(), state) if one.WhichOneof("value") != TRIGGER}
            states.extend(one for one in self._set.values() if one.id != widget)
        await self._socket.send(message.SerializeToString())
        again = True
        while again:  # st.rerun begins a run in the place of the one that it ends
            self.came = await until(self._socket, "script_finished")
            again = self.came[-1].script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
            for one in self.came:
                if one.WhichOneof("type") == "page_info_changed":
                    self.query = parse_qs(one.page_info_changed.query_string)

    async def bring(self, address: str, name: str, data: bytes, **headers: str) -> None:
        """Bring a file to the page's one field for files.

        Args:
            address: of the server.
            name, data: of the file.
            headers: of the browser.
        """
        place = (await upload_places(self._socket, [name]))[0]
        assert await asyncio.to_thread(put_file, address, place.upload_url, name, data, **headers) == 204
        state = FileUploaderState()
        state.uploaded_file_info.add(name=name, size=len(data), file_id=place.file_id, file_urls=place)
        widget = next(widget for kind, _, widget in self._widgets() if kind == "file_uploader")
        await self._run("file_uploader", widget, state)

    def _widgets(self) -> Iterator[tuple[str, str, str]]:
        """Yield kind, label and id of what can be changed on the page."""
        for one in self.came:
            if one.WhichOneof("type") != "delta":
                continue
            element, block = one.delta.new_element, one.delta.add_block
            holder: Any = element if element.WhichOneof("type") else block
            kind = str(holder.WhichOneof("type"))
            widget = getattr(holder, kind, None)
            if widget is not None and getattr(widget, "id", ""):
                yield kind, getattr(widget, "label", ""), widget.id

    def _found(self, called: str) -> tuple[str, str]:
        there = list(self._widgets())
        found = [(kind, widget) for kind, label, widget in there if label == called or widget.endswith(f"-{called}")]
        assert found, f"{called} is none of {[(kind, label, widget[-20:]) for kind, label, widget in there]}"
        return found[0]

    def text(self) -> str:
        """Return all that came for the page, as text."""
        return "\n".join(map(str, self.came))
