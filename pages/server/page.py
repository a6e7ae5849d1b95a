"""This server: its administrator sees who is there, what runs and what it takes; others can show that they are it."""

import os

import streamlit as st

from pages.kit.glossary import show_prose
from pages.language import section, t
from pages.room import heading
from pages.server.overview import show_models, show_rooms, show_runs, show_traffic
from pages.serving.owners import ADMIN, ADMINS, admit, is_admin


def _ask_who() -> None:
    """Let an administrator in, or say how there can be one."""
    secret, names = os.environ.get(ADMIN), os.environ.get(ADMINS)
    if not (secret or names):
        show_prose(section("server", "no_admin"))
        return
    show_prose(section("server", "ask"))
    if names and st.button(t("server.sign_in"), icon=":material/login:", type="primary"):
        st.login()
    if secret:
        with st.form("admin_form", border=False):
            given = st.text_input(t("server.secret"), type="password", autocomplete="current-password")
            if st.form_submit_button(t("server.enter"), icon=":material/key:"):
                if admit(given):
                    st.rerun()
                st.error(t("server.wrong"), icon=":material/block:")


heading(t("server.heading"))
if is_admin():
    show_prose(section("server", "look"))
    show_traffic()
    show_rooms()
    show_runs()
    show_models()
else:
    _ask_who()
