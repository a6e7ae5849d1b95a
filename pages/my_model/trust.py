"""The trust badge: does attention sum to 1, and how far is the model from its reference on the same weights?

The check runs in a thread of its own, since the reference takes seconds to load.
"""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache

import streamlit as st

from pages.ui.asking import Answer, ask_once, forget_answers
from pages.ui.boxes import watch
from pages.ui.exports import code_files, offer_files
from pages.ui.language import plain, t
from pages.ui.number_format import significant
from transformer_core.bundle import Bundle
from transformer_core.open_checkpoints.reference_check import SAMPLE, Trust, check_against_reference

TOLERANCE = 1e-4
SECONDS_AT_ONCE = 1.5
MOST_KEPT = 16
_checks: dict[str, tuple[Bundle, Future[Answer[Trust]]]] = {}
_lock = threading.Lock()


@lru_cache(maxsize=1)
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="trust")


def _check(bundle: Bundle) -> Future[Answer[Trust]]:
    """Return the check of a model, started if it is not yet."""
    with _lock:
        known, check = _checks.get(bundle.name, (None, None))
        if known is bundle and check is not None:
            return check
        check = _worker().submit(ask_once, check_against_reference, bundle=bundle)
        _checks[bundle.name] = (bundle, check)
        while len(_checks) > MOST_KEPT:
            del _checks[next(iter(_checks))]
        return check


def forget_checks() -> None:
    """Drop every answer about a model, since its name may now mean another one."""
    with _lock:
        _checks.clear()
    forget_answers()


def show_trust(bundle: Bundle) -> None:
    """Show the badge, or that the check is still running; the page does not wait for it."""
    check = _check(bundle)
    until = time.monotonic() + SECONDS_AT_ONCE
    while not check.done() and time.monotonic() < until:
        time.sleep(0.02)
    watch(check.done, lambda: _show(check, bundle), key=f"trust {bundle.name}")


def _show(check: Future[Answer[Trust]], bundle: Bundle) -> None:
    if not check.done():
        st.badge(t("my_model.checking"), icon=":material/hourglass_top:", color="grey")
        st.caption(t("my_model.checking_note"))
        return
    error = check.exception()
    if error is not None:
        st.badge(t("my_model.check_failed"), icon=":material/error:", color="red")
        st.caption(plain(f"{type(error).__name__}: {error!s:.300}"))
        return
    answer = check.result()
    found = answer.value
    _badge(found)
    _rows(found)
    _difference(found)
    count = len(bundle.tokenizer.encode(SAMPLE, max_len=bundle.config.max_len - 1))
    values = {"text": plain(SAMPLE), "count": count, "tolerance": f"{TOLERANCE:g}"}
    st.caption(t("my_model.summed", **values) if found.difference is None else t("my_model.compared", **values))
    offer_files(lambda: code_files(answer), key="trust", stem="trust", note=t("my_model.trust_note"))


def _badge(found: Trust) -> None:
    fits = [value <= TOLERANCE for value in (found.row_sums, found.difference) if value is not None]
    if not all(fits):
        st.badge(t("my_model.badge_differs"), icon=":material/gpp_bad:", color="red")
    elif found.difference is None:
        st.badge(t("my_model.badge_alone"), icon=":material/shield:", color="grey")
    else:
        st.badge(t("my_model.badge_agrees"), icon=":material/verified_user:", color="green")


def _rows(found: Trust) -> None:
    if found.row_sums is None:
        st.markdown(t("my_model.no_rows"))
    else:
        st.markdown(t("my_model.rows", greatest=significant(found.row_sums)))


def _difference(found: Trust) -> None:
    if found.difference is None:
        st.markdown(t("my_model.no_reference"))
    else:
        values = {"greatest": significant(found.difference), "reference": plain(found.reference or "")}
        st.markdown(t("my_model.difference", **values))
