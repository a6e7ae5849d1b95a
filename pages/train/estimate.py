"""How long a run will take, measured away from the page: one measurement at a time for the whole server."""

import hashlib
import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import streamlit as st

from pages.ui.runs import launcher
from transformer_core.training.runs.store.records import Estimate
from transformer_core.training.spec import RunSpec

MOST_KEPT = 64
Data = bytes | Path | None
_measuring = ThreadPoolExecutor(max_workers=1, thread_name_prefix="estimate")
_known: OrderedDict[str, Future[Estimate]] = OrderedDict()
_lock = threading.Lock()


def _name_of(spec: RunSpec, data_name: str) -> str:
    """Return one name for all specs that take the same time."""
    rates = replace(spec.training, learning_rate=1e-3, weight_decay=0.0, label_smoothing=0.0, warm_up=0.0)
    timed = replace(spec, name="run", origin=None, training=replace(rates, schedule="constant", clip_norm=1.0))
    return hashlib.sha256(f"{timed.to_json()}\0{data_name}".encode()).hexdigest()


def estimate(spec: RunSpec, data: Data, data_name: str) -> Future[Estimate]:
    """Return the measurement of a run's time, begun if nobody asked for it yet; it never blocks.

    A session that asks for another one lets go of its last, so that what nobody waits for is not measured.

    Args:
        spec: the run's.
        data: what lies in its file.
        data_name: tells these data from others, which costs less than comparing them.
    """
    name = _name_of(spec, data_name)
    with _lock:
        last = st.session_state.get("estimate_of")
        if last is not None and last != name and last in _known and _known[last].cancel():
            del _known[last]
        st.session_state.estimate_of = name
        if name not in _known or _known[name].cancelled():
            _known[name] = _measuring.submit(launcher().estimate, replace(spec, origin=None), data)
        _known.move_to_end(name)
        while len(_known) > MOST_KEPT:
            _known.popitem(last=False)[1].cancel()
        return _known[name]
