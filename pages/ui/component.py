"""Register a component with the running server once, so that browsers fetch its modules once."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from streamlit.components.v2 import component

from pages.figures.standalone import COMPONENTS, component_assets

try:
    from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
    from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest
except ImportError:  # not documented, so it may go; the script then travels with every message
    get_bidi_component_manager = None

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

_PACKAGE = "vitrine"
_lock = threading.Lock()
_mounts: dict[str, ComponentRenderer] = {}


def registered(name: str) -> ComponentRenderer:
    """Return what mounts the component whose main module is assets/components/NAME/NAME.js.

    Every component is served from assets/components, so that one may import another's modules by a relative path. A
    Streamlit that cannot serve files gets the modules joined.
    """
    script, style = component_assets(name)
    full = f"{_PACKAGE}.{name}"
    style = re.sub(r"\s+", " ", style).replace("} ", "}\n")  # line ends tell Streamlit that this is no path
    with _lock:
        if get_bidi_component_manager is None:
            if name not in _mounts:
                _mounts[name] = component(full, js=script, css=style)
            return _mounts[name]
        manager = get_bidi_component_manager()
        if manager.get_component_asset_root(full) is None:
            config = ComponentConfig(name, COMPONENTS.name)
            manager.register_from_manifest(ComponentManifest(_PACKAGE, "1", [config]), COMPONENTS.parent)
            _mounts[name] = component(full, js=f"{name}/{name}.js", css=style)
        return _mounts[name]
