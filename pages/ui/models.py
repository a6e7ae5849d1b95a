"""The models at hand: the shipped ones and every moment of the runs, each opened once for the whole server.

Read next: header.py.
"""

import json
import os
import re
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from pages.ui.language import ASSETS, t
from pages.ui.runs import find_run, shelf
from transformer_core.checkpoints import Bundle, BundleError, load
from transformer_core.training.runs.errors import RunError

CHECKPOINTS = ASSETS / "checkpoints"
OF_RUN = re.compile(r"run:([a-z0-9]{1,32})(?:@([0-9]{1,4}))?")
MORE_MODELS = "VITRINE_MODELS"  # names a folder of bundles to list after the shipped ones
MOST_RUNS = 12
SECONDS_FRESH = 3.0


def name_of_moment(run: str, frame: int | None = None) -> str:
    """Return the name of a run's model: of one frame, or with None of its end."""
    return f"run:{run}" if frame is None else f"run:{run}@{frame}"


def _folders() -> dict[str, Path]:
    """Return the folders of the shipped bundles, and of those in VITRINE_MODELS, by name in the order shown."""
    more = os.environ.get(MORE_MODELS)
    places = [CHECKPOINTS, Path(more).resolve()] if more else [CHECKPOINTS]
    return {path.parent.name: path.parent for place in places for path in sorted(place.glob("*/config.json"))}


def shipped_names() -> list[str]:
    """Return the names of the models that lie in folders, in the order they are shown."""
    return list(_folders())


@lru_cache(maxsize=64)
def _kind_of(folder: Path) -> str | None:
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8")).get("kind")
    except (OSError, ValueError, AttributeError):
        return None  # it stays among the models, for opening it tells what is wrong


@lru_cache(maxsize=1)
def _finished(_: int) -> tuple[tuple[str, str], ...]:
    stores = (store for store in shelf().all() if store.spec.data.kind == "classifier")
    done = ((store.id, store.spec.name) for store in stores if store.status().state == "finished")
    return tuple(pair for _, pair in zip(range(MOST_RUNS), done, strict=False))


def model_names(asked: str | None) -> dict[str, str]:
    """Return what people call each classifier that can be chosen, by name: those in folders, then finished runs'.

    Args:
        asked: a name that a link brings; a moment of a run is among the models where the link asks for it.
    """
    names = {name: name for name, folder in _folders().items() if _kind_of(folder) in ("classifier", None)}
    finished = _finished(int(time.monotonic() // SECONDS_FRESH))
    names |= {name_of_moment(run): t("model.run", name=called) for run, called in finished}
    found = OF_RUN.fullmatch(asked or "")
    if asked and found and asked not in names and (store := find_run(found[1])) is not None:
        moment = "" if found[2] is None else ", " + t("model.frame", frame=found[2])
        names[asked] = t("model.run", name=f"{store.spec.name}{moment}")
    return names


@lru_cache(maxsize=16)
def open_bundle(name: str) -> Bundle:
    """Load a model, once for all sessions.

    Raises:
        BundleError: what is wrong with it.
    """
    found = OF_RUN.fullmatch(name)
    if found is None:
        folder = _folders().get(name)
        if folder is None:
            raise BundleError(t("model.gone", name=name))
        return load(folder)
    store = find_run(found[1])
    if store is None:
        raise BundleError(t("model.run_gone", run=found[1]))
    try:
        bundle = store.model(None if found[2] is None else int(found[2]))
    except RunError as error:
        raise BundleError(str(error)) from error
    card = store.folder / "bundle" / "card.md"
    return replace(bundle, name=name, card=card.read_text(encoding="utf-8") if card.is_file() else "")


def code_that_opens(name: str) -> tuple[str, str]:
    """Return what Python must import to open a model in the project's folder, and the expression that opens it."""
    found = OF_RUN.fullmatch(name)
    if found is None:
        folder = _folders()[name]
        path = folder.relative_to(ASSETS.parent) if folder.is_relative_to(ASSETS.parent) else folder
        return "from transformer_core import load", f'load("{path.as_posix()}")'
    imports = (
        "from transformer_core.training.runs.folder import default_root\n"
        "from transformer_core.training.runs.store import RunStore"
    )
    return imports, f'RunStore(default_root() / "{found[1]}").model({found[2] or ""})'
