"""The script that Streamlit runs for every visit and every change: the frame around the page, then the page."""

import streamlit as st

from pages.hall.own_lectures import SCREENS, offer_to_add
from pages.hall.tour import ask_in_hall, find_newest, show_tour
from pages.kit.glossary import begin_page
from pages.kit.navigation import ICONS, in_hall, register, show_next, show_search
from pages.kit.url import arrive, go_to
from pages.language import ASSETS, language, stylesheet, t
from pages.running_sign import show_running
from pages.serving.headers import NAME_LANGUAGE
from pages.serving.inside_streamlit import has_lost_its_session
from pages.serving.limits import limits

st.set_page_config(page_icon=str(ASSETS / "icon.svg"), layout="wide")  # first, or a page's own icon is fetched
DARK, WHITE = "#14121b", "#ffffff"
dark = st.context.theme.type == "dark"
colours = {
    "surface": DARK if dark else WHITE,
    "primary": st.get_option(f"theme.{'dark' if dark else 'light'}.primaryColor"),
    "on-primary": DARK if dark else WHITE,  # white is too pale on dark's lilac
    "menu": f'"{t("nav.menu")}"',
}
hall = in_hall()
arrive(language())
st.session_state.framed = language()
page = register()
st.set_page_config(page_title=f"{page.title} · Vitrine")
variables = "".join(f"--{name}: {value}; " for name, value in colours.items())
style = stylesheet("app") + (stylesheet("app_hall") if hall else "")
st.html(
    f"<style>:root {{ {variables}}}\n{style}</style><script>{NAME_LANGUAGE[language()]}</script>",
    unsafe_allow_javascript=True,
)
go_to(page.url_path)
begin_page()
find_newest()
if hall:
    ask_in_hall()
else:
    show_running(page.url_path)
    show_search()
    show_tour()
    if "lost" not in st.session_state:
        st.session_state.lost = has_lost_its_session(st.context.headers.get("Sec-WebSocket-Protocol") or "")
        if st.session_state.lost:
            st.toast(t("session.lost"), icon=":material/sync_problem:", duration="infinite")
page.run()
name = page.url_path or next(iter(ICONS))
if not hall:
    with st.container(horizontal=True):
        show_next(name)
        if name in SCREENS and not limits().read_only:
            offer_to_add(name)
