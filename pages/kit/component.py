"""Register a component with the running server once, so that browsers fetch its modules once."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from streamlit.components.v2 import component

from pages.figures.standalone import COMPONENTS, component_assets
from pages.serving.inside_streamlit import serve_component

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

_PACKAGE = "vitrine"
_lock = threading.Lock()
_mounts: dict[str, ComponentRenderer] = {}


def _style(name: str) -> str:
    """Return a component's style on lines; line ends tell Streamlit that this is no path."""
    return re.sub(r"\s+", " ", component_assets(name)[1]).replace("} ", "}\n")


def registered(name: str) -> ComponentRenderer:
    """Return what mounts the component whose main module is assets/components/NAME/NAME.js.

    Every component is served from assets/components, so that one may import another's modules by a relative path. A
    Streamlit that cannot serve files gets the modules joined.
    """
    full = f"{_PACKAGE}.{name}"
    with _lock:
        new = serve_component(_PACKAGE, name, COMPONENTS)
        if new or name not in _mounts:
            script = component_assets(name)[0] if new is None else f"{name}/{name}.js"
            _mounts[name] = component(full, js=script, css=_style(name))
        return _mounts[name]
