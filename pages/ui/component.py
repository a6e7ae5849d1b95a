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
        if get_bidi_component_manager is None:
            if name not in _mounts:
                _mounts[name] = component(full, js=component_assets(name)[0], css=_style(name))
            return _mounts[name]
        manager = get_bidi_component_manager()
        if manager.get_component_asset_root(full) is None:
            config = ComponentConfig(name, COMPONENTS.name)
            manager.register_from_manifest(ComponentManifest(_PACKAGE, "1", [config]), COMPONENTS.parent)
            _mounts[name] = component(full, js=f"{name}/{name}.js", css=_style(name))
        return _mounts[name]
