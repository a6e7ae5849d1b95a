"""The models at hand, each opened once for the whole server, and the control that chooses one.

A choice follows from page to page; a page that cannot read the chosen model shows its own and keeps the choice.
"""

import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from itertools import groupby, islice
from pathlib import Path
from threading import Condition
from typing import Any

import streamlit as st
from cachetools import LRUCache, cached

from pages.kit.controls import Choice
from pages.kit.refusals import in_own_words
from pages.kit.runs import find_run, run_list
from pages.kit.url import listed, refuse, set_choice, widget_key
from pages.language import ASSETS, language, language_of, plain, safe_line, t
from pages.serving.limits import limits
from pages.serving.owners import is_home, may_change, visitor
from transformer_core.bundle import Bundle
from transformer_core.heavy_process import Place
from transformer_core.open_checkpoints import HUB, has_chat, kind_of_folder
from transformer_core.training.runs.errors import RunError
from transformer_core.trial import try_numbers
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.user_models.store import ROOM, OpenedModels, Room, default_root

CHECKPOINTS = ASSETS / "checkpoints"
OF_RUN = re.compile(r"run:([a-z0-9]{1,32})(?:@([0-9]{1,4}))?")
MORE_MODELS = "VITRINE_MODELS"  # names a folder of bundles to list after the shipped ones
MOST_RUNS, MOST_MOMENTS = 12, 8
WITH_MODEL = ("finished", "stopped", "interrupted")
FIRST = {  # shipped models that a person meets first, by the language of the text
    "en": ("sentiment", "bert", "gpt", "translation-en-fr", "seq2seq-en-fr"),
    "zh": ("sentiment-zh", "gpt-poem", "translation-zh-en"),
}
READERS = ("classifier", "bert", "gpt", "encoder", "tagger", "answerer")  # the kinds that read one text alone
KINDS_OF_PAGE: dict[str, tuple[str, ...]] = {
    "home": (*READERS, "translation"),
    **dict.fromkeys(("tokens", "embeddings", "positions", "masks", "attention", "feed_forward", "norm"), READERS),
    "why": ("classifier",),
    "encoder": ("classifier",),
    "translation": ("translation",),
    "bert": ("bert", "tagger", "answerer"),
    **dict.fromkeys(("gpt", "since"), ("gpt",)),
    "before": ("seq2seq", "lm"),
    "one_step": ("classifier", "gpt", "bert", "translation", "lm", "seq2seq"),
    "lab": ("classifier", "gpt", "bert", "translation", "lm", "seq2seq", "encoder"),
}
MOST_OPENED = 48  # models of all visitors
SECONDS_FRESH = 3.0
LONGEST_CARD = 20_000


def _version_of(folder: Path) -> int:
    """Return a number that is another one once other files lie in a model's folder, whichever process put them there.

    The shipped ones stay as they are.
    """
    if folder.is_relative_to(CHECKPOINTS):
        return 0
    try:
        return max(path.stat().st_mtime_ns for path in (folder, *(folder.iterdir() if folder.is_dir() else ())))
    except OSError:  # it is being removed; opening it tells
        return 0


@lru_cache(maxsize=64)
def _vocabulary_of(folder: Path, _: int) -> str | None:
    file = folder / "tokenizer.json"
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def with_same_vocabulary(name: str) -> list[str]:
    """Return the other models of this one's kind, in folders, whose file of the tokenizer is the same."""
    folders, kind = model_folders(), kind_of(name)
    others = [other for other in folders if other != name and kind_of(other) == kind] if name in folders else []
    known = {other: _vocabulary_of(folders[other], _version_of(folders[other])) for other in (*others, name)}
    return [other for other in others if known[name] is not None and known[other] == known[name]]


def name_of_moment(run: str, frame: int | None = None) -> str:
    """Return the name of a run's model: of one frame, or with None of its end."""
    return f"run:{run}" if frame is None else f"run:{run}@{frame}"


def model_folders() -> dict[str, Path]:
    """Return every folder that holds a model, by name: the shipped ones, those in VITRINE_MODELS, the opened ones.

    A model in one file stands in its folder's place.

    Of the opened ones there are those that this visitor opened, and those that are shared.
    """
    own = _own_folders()
    opened = opened_models().all().items()
    return own | {
        name: model.folder for name, model in opened if name not in own and (model.shared or may_change(model.owner))
    }


_left_out: set[Path] = set()  # folders of the server's own


def _own_folders() -> dict[str, Path]:
    found = _folders_in(CHECKPOINTS, os.environ.get(MORE_MODELS), int(time.monotonic() // SECONDS_FRESH))
    return {name: folder for name, folder in found.items() if folder not in _left_out}


def leave_out(name: str) -> None:
    """List one of the server's own models no more, as long as the server runs."""
    _left_out.add(_own_folders()[name])


@lru_cache(maxsize=4)
def _folders_in(shipped: Path, more: str | None, _: int) -> dict[str, Path]:
    places = [shipped, Path(more).resolve()] if more else [shipped]
    found = {path.parent.name: path.parent for place in places for path in sorted(place.glob("*/config.json"))}
    return found | {path.stem: path for place in places for path in sorted(place.glob("*.gguf"))}


def shipped_names() -> list[str]:
    """Return the names of the models that came with the server, in the order they are shown."""
    return list(_own_folders())


def comes_with_app(name: str) -> bool:
    """Tell whether a model is one of the project's own, whose words nobody else wrote."""
    folder = _own_folders().get(name)
    return folder is not None and folder.is_relative_to(ASSETS)


def opened_models() -> OpenedModels:
    """Return the store of the models that people opened on this server; what is added belongs to this visitor."""
    return OpenedModels(default_root(), visitor(), room=room())


def room() -> Room:
    """Return how many opened models are kept: at home as many as there is room for, else so many a person."""
    if is_home():
        return ROOM
    given = limits()
    return Room(given.person_models, given.person_models_mb << 20, all_models=MOST_OPENED)


@lru_cache(maxsize=64)
def _read_kind(folder: Path, _: int) -> str | None:
    return kind_of_folder(folder)  # None stays among the models, for opening it tells what is wrong


def _kind_of(folder: Path) -> str | None:
    return _read_kind(folder, _version_of(folder))


def kind_of(name: str) -> str | None:
    """Return a model's kind without opening it, None where there is no such model or its folder does not tell."""
    found = OF_RUN.fullmatch(name)
    if found is None:
        folder = model_folders().get(name)
        return None if folder is None else _kind_of(folder)
    store = find_run(found[1])
    return None if store is None else store.spec.kind


@lru_cache(maxsize=64)
def _has_chat(folder: Path, _: int) -> bool:
    return has_chat(folder)


def chat_models() -> list[str]:
    """Return the names of the models in folders that chat: those that come with a chat template."""
    return [name for name, folder in model_folders().items() if _has_chat(folder, _version_of(folder))]


@lru_cache(maxsize=8)
def _ended(_: int, kinds: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return id and owner of the runs of these kinds that ended, not by a fault."""
    stores = (store for store in run_list().all() if store.spec.kind in kinds)
    return tuple((store.id, store.owner) for store in stores if store.status().state in WITH_MODEL)


@lru_cache(maxsize=64)
def _moments(_: int, run: str) -> tuple[int, ...]:
    """Return the frames of a run whose weights are there, at most MOST_MOMENTS from the first to the last."""
    store = find_run(run)
    try:
        there = [] if store is None else [one.number for one in store.frames() if store.weights_path(one.number)]
    except RunError:  # told where it is opened
        there = []
    spread = range(min(len(there), MOST_MOMENTS))
    return tuple(there[place * (len(there) - 1) // max(len(spread) - 1, 1)] for place in spread)


def model_names(asked: str | None, kinds: Sequence[str] = ("classifier",)) -> dict[str, str]:
    """Return what people call each model of these kinds, by name: those in folders, kind by kind, then those of runs
    that finished or were stopped.

    Args:
        asked: the model on the screen, or a name that a link brings; where it is a run's, moments of that run follow.
        kinds: a folder that does not tell its kind stays among them, for opening it tells what is wrong.
    """
    order = (*kinds, None)
    kinds_there = {name: _kind_of(folder) for name, folder in model_folders().items()}
    there = [name for name, kind in kinds_there.items() if kind in order]
    names = {name: name for name in sorted(there, key=lambda name: order.index(kinds_there[name]))}
    now = int(time.monotonic() // SECONDS_FRESH)
    own = (run for run, owner in _ended(now, tuple(kinds)) if may_change(owner) and _moments(now, run))
    runs = [name_of_moment(run) for run in islice(own, MOST_RUNS)]
    found = OF_RUN.fullmatch(asked or "")
    if asked and found and kind_of(asked) in kinds:
        runs += [asked, *(name_of_moment(found[1], frame) for frame in _moments(now, found[1]))]
    return names | {name: called(name) for name in runs}


def called(name: str) -> str:
    """Return what people call a model; a run that is gone keeps its id."""
    found = OF_RUN.fullmatch(name)
    if found is None:
        return name
    store = find_run(found[1])
    moment = "" if found[2] is None else ", " + t("model.frame", frame=found[2])
    return t("model.run", name=f"{found[1] if store is None else store.spec.name}{moment}")


def place_of(name: str) -> Place:
    """Return where a model lies.

    Raises:
        BundleError: there is none of that name.
    """
    found = OF_RUN.fullmatch(name)
    if found is None:
        folder = _own_folders().get(name) or model_folders().get(name)
        if folder is None:
            raise BundleError(t("model.gone", name=name))
        return Place(name, folder, version=_version_of(folder))
    store = find_run(found[1])
    if store is None:
        raise BundleError(t("model.run_gone", run=found[1]))
    frame = None if found[2] is None else int(found[2])
    return Place(name, store.folder, of_run=True, frame=frame)


def _bytes_of(bundle: Bundle) -> int:
    return sum(tensor.nbytes for tensor in (*bundle.model.parameters(), *bundle.model.buffers()))


@lru_cache(maxsize=1)
def opener() -> Any:
    """Return what opens a model once for all sessions and keeps those that were used last, as memory is meant for."""
    kept = LRUCache(limits().open_models_mb << 20, getsizeof=_bytes_of)
    return cached(kept, condition=Condition(), info=True)(_open)


def open_bundle(name: str) -> Bundle:
    """Load a model, once for all sessions.

    Raises:
        BundleError: what is wrong with it.
    """
    return opener()(place_of(name))


def _open(place: Place) -> Bundle:
    try:
        bundle = place.open()
    except RunError as error:
        raise BundleError(str(error)) from error
    card = place.folder / "bundle" / "card.md"
    if not comes_with_app(place.name):
        try_numbers(bundle)
    if place.of_run:
        bundle = replace(bundle, card=card.read_text(encoding="utf-8") if card.is_file() else "")
    return bundle


def broken(name: str, error: BundleError) -> str:
    """Say why a model cannot be opened."""
    return t("model.broken", name=plain(name), error=plain(in_own_words(str(error))))


def open_or_say(name: str) -> Bundle | None:
    """Load a model as open_bundle does; where it cannot be, say why on the page and return None."""
    try:
        return open_bundle(name)
    except BundleError as error:
        st.info(broken(name, error), icon=":material/info:")
        return None


def code_that_opens(name: str) -> tuple[str, str]:
    """Return what Python must import to open a model, and the expression that opens it.

    It names no folder of this machine: `vitrine` is the project's folder on the machine where it runs.
    """
    found = OF_RUN.fullmatch(name)
    if found is not None:
        imports = (
            "from transformer_core.training.runs.store.folder import default_root\n"
            "from transformer_core.training.runs.store.run_store import RunStore"
        )
        return imports, f'RunStore(default_root() / "{found[1]}").model({found[2] or ""})'
    opening = "from transformer_core import load"
    if name in _own_folders():
        if comes_with_app(name):
            return opening, f'load(vitrine / "assets/checkpoints/{name}")'
        return opening, f'load(Path(os.environ["{MORE_MODELS}"]) / {json.dumps(name, ensure_ascii=False)})'
    opened = opened_models().all().get(name)
    if opened is not None and opened.origin == "hub":
        return opening, f"load({HUB + opened.asked!r})"
    import_code = "from transformer_core.user_models import store"
    named = json.dumps(name, ensure_ascii=False)
    return f"{opening}\n{import_code}", f"load(store.OpenedModels(store.default_root()).all()[{named}].folder)"


def is_there(name: str) -> bool:
    """Tell whether this visitor may open a model of this name."""
    return OF_RUN.fullmatch(name) is not None or name in model_folders()


def forget_models() -> None:
    """Let go of every model that was opened and of what kind it is; nobody asks for the former ones any more."""
    opener.cache_clear()
    _read_kind.cache_clear()
    _has_chat.cache_clear()
    _ended.cache_clear()
    _moments.cache_clear()


MOST_KEPT = 8


def _preferred() -> list[str]:
    return st.session_state.setdefault("models", [])


def prefer_model(name: str) -> None:
    """Let this model be the first choice of every page that can read its kind."""
    st.session_state.models = [name, *(other for other in _preferred() if other != name)][:MOST_KEPT]


def first_model(language: str, kinds: Sequence[str]) -> str | None:
    """Return the shipped model of these kinds that people of a language meet first, None where there is none."""
    folders = _own_folders()
    there = [name for name in FIRST[language] if name in folders]
    return next((name for kind in kinds for name in there if _kind_of(folders[name]) == kind), None)


def _follow_language(default: str, *, typed: bool) -> None:
    """Let the control show this default where it shows the one of another language, and nobody chose that.

    Args:
        typed: a person typed the text, which keeps its model.
    """
    key = widget_key("model")
    before, st.session_state[f"default {key}"] = st.session_state.get(f"default {key}"), default
    if not typed and before not in (None, default, *_preferred()) and st.session_state.get(key) == before:
        set_choice("model", default)


def choose_model(kinds: Sequence[str], *, typed: str | None = None) -> str | None:
    """Show the models of these kinds, beginning with the last that was chosen among them; None where there is none.

    Where none was chosen, it begins with the one that readers of the text's language meet first: of what a person
    typed, else of the interface, whose language the example has.

    Args:
        kinds: that the page can read, the likeliest first.
        typed: the text that a person typed, if any.
    """
    linked = None if widget_key("model") in st.session_state else st.query_params.get("model")
    names = model_names(st.session_state.get(widget_key("model"), linked), kinds)
    if not names:
        return None
    spoken = (language_of(typed) if typed else None) or language()
    default = first_model(spoken, kinds) or first_model("en", kinds)
    if default in names:
        names = {default: names[default]} | names
    _follow_language(next(iter(names)), typed=typed is not None)
    if linked is not None and linked not in _preferred():
        if linked in names or kind_of(linked) is not None:
            prefer_model(linked)
        else:
            refuse("model", linked, listed(list(names)))
    usual = next((name for name in _preferred() if name in names), next(iter(names)))
    if widget_key("model") not in st.session_state:
        set_choice("model", usual)
    chosen = Choice("model", names, label="header.model", form="list").show()
    if chosen != usual:
        prefer_model(chosen)
    return chosen


def other_kind(chosen: str) -> str | None:
    """Say in one line that the model last chosen is of a kind that this page cannot read; None where it can."""
    last = next(iter(_preferred()), chosen)
    kind = kind_of(last)
    if last == chosen or kind is None:
        return None
    return t("model.elsewhere", name=last, kind=t(f"kind.{kind}"), shown=chosen)


def take_model(name: str) -> None:
    """Choose a model; only in a callback."""
    prefer_model(name)
    set_choice("model", name)


def offer_model(message: str, kinds: Sequence[str], *, name: str | None = None, key: str = "offer") -> None:
    """Say in one line why a part needs another model, with a button that switches to it.

    Args:
        kinds: of the model; the first there is is offered.
        name: the one model that will do, in place of the first.
        key: of the button.
    """
    st.info(message, icon=":material/info:")
    name = name or next(
        (name for name in _preferred() if kind_of(name) in kinds), next(iter(model_names(None, kinds)), None)
    )
    said, icon = t("outcome.switch", name=plain(name or "")), ":material/swap_horiz:"
    if name is not None and st.button(said, icon=icon, on_click=take_model, args=(name,), key=key):
        st.rerun(scope="app")


def show_card_text(bundle: Bundle) -> None:
    """Show a model's card in the language chosen, or that it has none.

    A card that may come from anyone keeps its headings, tables, lists, bold words and code; at most LONGEST_CARD
    characters of it are shown.
    """
    card = bundle.card_in(language())
    if comes_with_app(bundle.name):
        st.markdown(card)
        return
    card = card[:LONGEST_CARD] or t("model.no_card")
    for is_code, lines in groupby(card.splitlines(), key=lambda line: line.startswith(("    ", "\t"))):
        text = "\n".join(line.strip() if is_code else safe_line(line) for line in lines)
        if is_code:
            st.code(text, language=None, wrap_lines=True)
        elif text.strip():
            st.markdown(text)
