"""My model: open a checkpoint, see what it is, check it against its reference, and use it on every page."""

import streamlit as st

from pages.kit.glossary import show_prose
from pages.kit.models import broken, choose_model, open_bundle
from pages.language import section, t
from pages.my_model.about import show_card, show_identity, show_pages, show_parts, show_removal, show_sizes
from pages.my_model.open import show_opening
from pages.my_model.trust import show_trust
from pages.room import heading
from transformer_core.bundle import MODELS, Bundle
from transformer_core.untrusted.bundle_files import BundleError


def show_model(bundle: Bundle) -> None:
    """Show what a model is, the pages that show it, and whether to trust it."""
    show_identity(bundle)
    with st.container(border=True):
        st.markdown(f"**{t('my_model.trust')}**")
        trust = st.container()
    show_pages(bundle)
    show_sizes(bundle)
    with trust:
        show_trust(bundle)
    show_card(bundle)


heading(t("my_model.heading"))
show_prose(section("my_model", "look"))
opening, shown = st.columns([1, 1.9], gap="large")
with opening:
    show_opening()
with shown:
    name = choose_model(tuple(MODELS))
    bundle = None
    if name is not None:
        try:
            bundle = open_bundle(name)
        except BundleError as error:
            st.error(broken(name, error), icon=":material/error:")
    if bundle is not None:
        show_model(bundle)
    if name is not None:
        show_removal(name)
if bundle is not None:
    show_parts(bundle)
with st.expander(t("story.why"), icon=":material/school:"):
    show_prose(section("my_model", "why"))
