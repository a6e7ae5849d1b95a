"""The list of runs and what starts them, one for the whole server; whether visitors may start anything."""

import threading
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import streamlit as st

from pages.kit.url import current, forget, keep
from pages.language import plain, t
from pages.serving.limits import limits
from pages.serving.owners import address, is_home, is_person, may_change, visitor
from transformer_core.training.runs.beginning import Beginning
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.run_list import BOUNDS, Bounds, RunList
from transformer_core.training.runs.runner import Runner, runner
from transformer_core.training.runs.store.folder import default_root
from transformer_core.training.runs.store.records import Status
from transformer_core.training.runs.store.run_store import RunStore
from transformer_core.training.spec import DataSpec, RunSpec

LIVE = ("queued", "starting", "running", "paused")
MOST_RUNS_OF_AN_ADDRESS = (
    60  # that compute, wait or pause; 40 people behind one address have one each, and the queue 100
)
_beginning = threading.Lock()
_started_from: dict[str, str] = {}  # runs that this server started, and the addresses that asked for them


@lru_cache(maxsize=4)
def _run_list_at(root: Path) -> RunList:
    return RunList(root)


def is_live(status: Status) -> bool:
    """Tell whether a run still moves, or its worker still writes."""
    return status.state in LIVE or status.alive


def run_list() -> RunList:
    """Return the list of this server's runs, to read."""
    return _run_list_at(default_root())


def own_runs() -> RunList:
    """Return the same list, in which this visitor makes runs, within the bounds of a person."""
    return RunList(default_root(), owner=visitor(), bounds=bounds())


def bounds() -> Bounds:
    """Return how many runs are kept and wait: at home as many as there is room for, else so many a person."""
    if is_home():
        return BOUNDS
    given = limits()
    return Bounds(given.person_runs, given.person_runs_mb << 20, given.person_live_runs)


def listed_runs() -> list[RunStore]:
    """Return the runs that this visitor may change, newest first; others are watched by their links."""
    return [store for store in run_list().all() if may_change(store.owner)]


def newest_run() -> str | None:
    """Return the run that this visitor began last, None where there is none."""
    return next((store.id for store in run_list().all() if store.owner == visitor()), None)


def _require_place(run: str = "") -> None:
    """Raise RunError where this visitor is no person, or too many others of the address compute, wait or pause."""
    if not is_person():
        raise RunError(t("run.cookies"))
    live = runner().live(default_root() / other for other in _started_from)
    for gone in [other for other in _started_from if default_root() / other not in live]:
        del _started_from[gone]
    others = [where for other, where in _started_from.items() if other != run]
    if not is_home() and others.count(address()) >= MOST_RUNS_OF_AN_ADDRESS:
        raise RunError(t("run.address", most=MOST_RUNS_OF_AN_ADDRESS))


def begin_run(spec: RunSpec, data: bytes | Path | None = None, beginning: Beginning | None = None) -> RunStore:
    """Make a run and start it; where it cannot start, nothing of it stays.

    One begins at a time, so that nobody has more at once than a person may.

    Raises:
        RunError: why not.
    """
    runs = own_runs()
    with _beginning:
        _require_place()
        store = runs.create(replace(spec, name=runs.free_name(spec.name)), data=data, beginning=beginning)
        try:
            starter().start(store)
        except RunError:
            with suppress(RunError):
                runs.delete(store.id)
            raise
        _started_from[store.id] = address()
    return store


def resume_run(store: RunStore) -> None:
    """Continue a run that rests.

    Raises:
        RunError: why not.
    """
    with _beginning:
        _require_place(store.id)
        starter().ask(store, "resume")
        _started_from[store.id] = address()


def starter() -> Runner:
    """Return what computes runs, to start some.

    Raises:
        RunError: visitors of this server only look.
    """
    if limits().read_only:
        raise RunError("this server is read-only (VITRINE_READ_ONLY): it starts no runs")
    return runner()


def start_waiting() -> None:
    """Start the runs that wait since the last server ended, when this one begins."""
    with suppress(RunError):  # a read-only server leaves them; the Train page says what is wrong with the folder
        starter().look(default_root())


def stop_launching() -> None:
    """Let go of what starts runs, when the server ends."""
    runner().close()


def find_run(run: str) -> RunStore | None:
    """Return a run, None where there is none that can be read."""
    try:
        return run_list().open(run)
    except RunError:
        return None


def problem_of(run: str) -> str:
    """Say why a run that a link asks for cannot be shown: it is gone, or broken; nothing where it can be."""
    store = find_run(run)
    if store is None:
        return t("run.gone", run=plain(run[:80]))
    try:
        store.require_readable()
    except RunError as error:
        return t("run.broken", run=plain(run), error=plain(str(error)))
    return ""


def follow(run: str | None, *, name: str = "run") -> None:
    """Let the page show a run from its newest frame, or with None the form; before anything of it is shown."""
    forget(name, "frame", "step")
    if run is not None:
        keep(name, run, "")


def followed(name: str = "run") -> str | None:
    """Return the id of the run that the page is asked to show."""
    return current(name) or None


def learned_words(data: DataSpec) -> str:
    """Return what a run learns from, in a line: "my.csv, 120 rows, food / travel"; not yet fit for Markdown."""
    count = data.given.count if data.given else None
    if data.source == "table":
        rows = t("learned.rows", name=data.given.name, count=f"{count:,}") if data.given else t("option.source.table")
        return t("learned.table", rows=rows, labels=" / ".join(data.labels))
    if data.source in ("characters", "masked_words") and data.file is not None:
        return t("learned.text") if count is None else t("learned.characters", count=f"{count:,}")
    if data.source == "pairs":
        return _learned_pairs(data)
    source, spoken = t(f"option.source.{data.source}"), t(f"option.language.{data.language}")
    if data.source in ("characters", "masked_words"):
        return t("learned.story", source=source, language=spoken)
    if data.source == "reviews":
        return t("learned.reviews", source=source, language=spoken, count=f"{data.examples:,}")
    if data.source == "imdb":
        return source if count is None else t("learned.imdb", source=source, count=f"{count:,}")
    return t("learned.letters", source=source, symbols=data.symbols, length=data.length, count=f"{data.examples:,}")


def _learned_pairs(data: DataSpec) -> str:
    if data.file is None:
        return t(f"learned.pairs_{data.language}", count=f"{data.examples:,}")
    given = data.given
    name = given.name if given is not None and given.name else t("learned.pairs_pasted")
    return name if given is None else t("learned.pairs", name=name, count=f"{given.count:,}")


def in_words(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 99.5:
        return t("time.seconds", count=max(1, round(seconds)))
    if seconds < 5_400:
        return t("time.minutes", count=round(seconds / 60))
    return t("time.hours", count=f"{seconds / 3_600:.1f}")


def refuse_read_only() -> bool:
    """Tell whether visitors may only look, and say so in the place of the controls that are not there."""
    read_only = limits().read_only
    if read_only:
        st.info(t("read_only.said"), icon=":material/visibility:")
    return read_only
