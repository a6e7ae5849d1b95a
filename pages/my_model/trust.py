"""The trust badge: does attention sum to 1, and how far is the model from its reference on the same weights?

The check runs in a process of its own, since the reference takes seconds to load.
"""

import streamlit as st

from pages.kit.exports import code_files, offer_files
from pages.kit.number_format import significant
from pages.kit.waiting import awaited
from pages.language import plain, t
from transformer_core.bundle import Bundle
from transformer_core.open_checkpoints.reference_check import SAMPLE, TOLERANCE, Trust, check_against_reference

HEIGHT = 160
LONGEST = 78  # characters of a text that are quoted


def show_trust(bundle: Bundle) -> None:
    """Show the badge, or that the check is still running; the page does not wait for it."""
    try:
        answer = awaited(check_against_reference, t("my_model.checking"), key="trust", height=HEIGHT, bundle=bundle)
    except Exception as error:
        st.badge(t("my_model.check_failed"), icon=":material/error:", color="red")
        st.caption(plain(f"{type(error).__name__}: {error!s:.300}"))
        return
    if answer is None:
        return
    found = answer.value
    _badge(found)
    _ids(found)
    _rows(found)
    _difference(found)
    count = len(bundle.tokenizer.encode(SAMPLE, max_len=bundle.config.max_len - 1))
    values = {"text": plain(SAMPLE), "count": count, "tolerance": f"{TOLERANCE:g}"}
    st.caption(t("my_model.summed", **values) if found.difference is None else t("my_model.compared", **values))
    offer_files(lambda: code_files(answer), key="trust", stem="trust", note=t("my_model.trust_note"))


def _badge(found: Trust) -> None:
    fits = [value <= TOLERANCE for value in (found.row_sums, found.difference) if value is not None]
    if not all(fits) or found.other_ids is not None:
        st.badge(t("my_model.badge_differs"), icon=":material/gpp_bad:", color="red")
    elif found.difference is None:
        st.badge(t("my_model.badge_alone"), icon=":material/shield:", color="grey")
    else:
        st.badge(t("my_model.badge_agrees"), icon=":material/verified_user:", color="green")


def _quoted(*texts: str | None) -> str:
    return " + ".join(
        repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…") for text in texts if text is not None
    )


def _ids(found: Trust) -> None:
    if (other := found.other_ids) is not None:
        text = _quoted(other.text, other.pair)
        ours, theirs = (" ".join(tokens)[:200] for tokens in (other.ours, other.theirs))
        st.markdown(t("my_model.other_ids", text=plain(text), ours=plain(ours), theirs=plain(theirs)))
    elif found.n_texts:
        st.markdown(t("my_model.same_ids", count=found.n_texts))
    elif found.reference is not None:
        st.markdown(t("my_model.no_ids"))


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
    if (other := found.other_numbers) is not None:
        key = "my_model.other_numbers_padded" if other.pads else "my_model.other_numbers"
        values = {"text": plain(_quoted(other.text, other.pair)), "pads": other.pads}
        st.markdown(t(key, site=other.site, greatest=significant(other.difference), **values))
