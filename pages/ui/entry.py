"""The script that Streamlit runs for every visit and every change: the frame around the page, then the page."""

import streamlit as st

from pages.ui.box_styles import COVERED, SLOTS
from pages.ui.glossary import STYLE, begin_page
from pages.ui.headers import NAME_LANGUAGE
from pages.ui.in_hall import STYLE as HALL_STYLE
from pages.ui.in_hall import in_hall
from pages.ui.language import ASSETS, language, t
from pages.ui.limits import limits
from pages.ui.navigation import ICONS, register, show_next
from pages.ui.own_lectures import SCREENS, offer_to_add
from pages.ui.search import show_search
from pages.ui.tour import ask_in_hall, find_newest, show_tour
from pages.ui.underway import show_underway
from pages.ui.url import arrive, go_to

st.set_page_config(page_icon=str(ASSETS / "icon.svg"), layout="wide")  # first, or a page's own icon is fetched
DARK, WHITE = "#14121b", "#ffffff"

# On a narrow screen what is wide by nature scrolls in its own box; under a finger every control is FINGER high.
TOUCH = """
@media (max-width: 640px) {
  [data-testid="stMarkdownContainer"] > table { display: block; overflow-x: auto; }
  :is(.katex-display, .stVegaLiteChart, .stPlotlyChart) { max-width: 100%; overflow-x: auto; }
  [data-testid="stMarkdownContainer"] :is(p, li) > span:has(> .katex) {
    display: inline-block; max-width: 100%; overflow-x: auto; overflow-y: hidden; vertical-align: bottom;
  }
  .katex-mathml { left: 0; }
  .stHorizontalBlock:has(> .stColumn .st-key-language_and_share) {
    flex-flow: row wrap; row-gap: 0.5rem;
    & > .stColumn { flex: 1 1 8rem; width: auto; min-width: 0; }
    & > .stColumn:first-child { flex-basis: 100%; }
    & > .stColumn:not(:first-child):last-child { flex: none; }
    & > .stColumn:has(.st-key-run_buttons) { flex-basis: 100%; order: 1; }
  }
  [data-testid="stLayoutWrapper"]:has(> [class*="st-key-stays_"]) {
    position: sticky; top: 3.75rem; z-index: 20; background: var(--surface); border-bottom: 1px solid #80808c60;
    & .stHorizontalBlock { flex-flow: row wrap; gap: 0.25rem 0.75rem; }
    & .stColumn { flex: 1 1 40%; width: auto; min-width: 40%; }
    & .stColumn > .stVerticalBlock { gap: 0; }
    & [data-value] { font-size: 1.1rem !important; }
  }
  [data-testid="stExpandSidebarButton"]::after { content: var(--menu); margin-inline-start: 0.25rem; font-weight: 600; }
  :is(.st-key-gpt_text, .st-key-before_text) { overflow-x: auto; & > * { min-width: 44rem; } }
  [class*="st-key-cover_"] > .stElementContainer:has(i) { width: 0; overflow: hidden; }
}
@media (pointer: coarse) {
  :is(.stMain, .stSidebar, .stAppHeader, [data-baseweb="popover"]) :is(button, summary, select, [role="radio"], li > a),
  :is(.stTextInput, .stSelectbox, .stNumberInput) :is(input, [data-baseweb]) { min-height: 40px; }
  [data-testid="stSidebarNav"] a, [data-testid="stTopNavLink"] { min-height: 40px; }
  .stSlider { min-height: 56px; }
  :is([data-testid="stTooltipIcon"], .st-key-text_line) button { position: relative; min-height: 0; }
  :is([data-testid="stTooltipIcon"], .st-key-text_line) button::after { content: ""; position: absolute; inset: -12px; }
}
"""
# Room for one more line, so that nothing below moves while a person types.
ROOM = """
@media (min-width: 641px) {
  .st-key-picture:has([data-lines="bert_sentence"]) .st-key-bert_hidden-bert { min-height: 102px; }
  .st-key-gpt_text { min-height: 176px; }
}
"""
surface = DARK if st.context.theme.type == "dark" else WHITE
primary = st.get_option(f"theme.{'dark' if st.context.theme.type == 'dark' else 'light'}.primaryColor")
on_primary = DARK if st.context.theme.type == "dark" else WHITE  # white is too pale on dark's lilac
# What is not sent again yet keeps its colour while a person types: Streamlit would fade it.
# A selector does not go on from :has() to *, nor to an attribute that many have: whatever changes, the browser would
# style the whole page anew. Those that must are on the page only while they hold (PALE, OLD).
style = f"""
:root {{ --surface: {surface}; --menu: "{t("nav.menu")}"; }}
.stMainBlockContainer {{ padding-top: 3.75rem; }}
.stMainBlockContainer > .stVerticalBlock > .stElementContainer:first-child {{ position: absolute; }}  /* this style */
[data-testid="stBaseButton-primary"]:not(:disabled) *, [data-tag] * {{ color: {on_primary}; }}
[data-testid="stToastContainer"] {{ inset: auto 1rem 1rem auto; }}
[class*="of_several_tables"] [data-testid="stElementToolbarButton"]:has([aria-label^="Show data"]) {{ display: none; }}
[data-testid^="stMetric"] * {{ white-space: normal; text-overflow: clip; overflow-wrap: anywhere; }}
[data-testid="stMetricValue"], [data-testid="stMetricValue"] > div {{ height: auto; line-height: 1.25; }}
:is(.st-key-underway, .st-key-search) {{ position: fixed; top: 10px; right: 1rem; z-index: 999992; width: auto; }}
.st-key-underway {{ top: 13px; right: 8rem; }}
.stElementContainer:has(> .st-key-search_focus), .st-key-search_focus {{ display: none; }}
[data-testid="stLayoutWrapper"]:has(> .st-key-search) {{ position: absolute; }}
[data-testid="stMarkdownContainer"] td {{ max-width: 50vw; overflow-wrap: break-word; }}  /* a word without end */
.katex-display {{ overflow-y: hidden; padding: 2px 4px; }}
.katex-display > .katex {{ font-size: 1.05em; }}
[data-testid="stElementContainer"] {{ opacity: 1 !important; transition: none !important; }}
.st-key-text_line {{ height: 1.25rem; margin-top: -0.5rem; flex-wrap: nowrap; }}
.st-key-text_line button {{ min-height: 0; height: 1.25rem; padding-block: 0; font-size: 0.875rem; }}
.st-key-counter_examples del {{ background: #c0392b33; text-decoration: line-through 2px #c0392b; }}
.st-key-counter_examples button > div {{ justify-content: flex-start; }}  /* a sentence that changes keeps its start */
.st-key-tour {{ padding: 0.5rem 1rem; gap: 0.25rem; }}
.st-key-title {{ row-gap: 0.25rem; }}
[data-testid="stLayoutWrapper"]:has(> .st-key-parts) {{ flex: 1 0 100%; }}
.st-key-parts {{ gap: 0.25rem 1.5rem; }}
.st-key-title h2 {{ font-size: 1.75rem; padding: 0.25rem 0.75rem 0.25rem 0; }}
.stExpander :is(h1, h2, h3) {{ font-size: 1.15rem; padding: 0.75rem 0 0.25rem; }}  /* of a card */
.text-line {{ position: relative; height: 1.25rem; font-size: 0.875rem; line-height: 1.25rem; outline: none; }}
.st-key-picture .stElementContainer:has(.text-line) {{ margin-top: -0.75rem; }}
.text-line span {{ display: block; opacity: 0.75; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.text-line:is(:hover, :focus) span {{ position: absolute; inset: 0 0 auto; z-index: 9; padding-bottom: 4px; }}
.text-line:is(:hover, :focus) span {{ opacity: 1; white-space: normal; background: var(--surface); }}
.text-line:is([data-pale], [data-loud]) span {{ opacity: 1; font-weight: 600; }}
:is(.st-key-examples, .st-key-notice) {{ margin-block: -0.5rem -0.25rem; }}
:is(.st-key-examples, .st-key-notice) button {{ min-height: 1.75rem; height: 1.75rem; padding-block: 0; }}
:is(.st-key-examples [role="radiogroup"], .st-key-notice) {{
  flex-wrap: nowrap; gap: 0.5rem; overflow-x: auto; scrollbar-width: none;
}}
.st-key-notice > .stElementContainer {{ flex: none; white-space: nowrap; }}
@media (max-width: 640px) {{  /* as high as the row of sentences, its words whole */
  :is(.st-key-examples, .st-key-notice) {{ height: 2.5rem; }}
  .st-key-notice > .stElementContainer:first-child {{ white-space: normal; width: calc(100% - 3rem) !important; }}
  .st-key-notice p {{ font-size: 0.8rem; line-height: 1.2; }}
}}
{STYLE}
.stElementContainer:has(> * > [data-formula]:empty) {{ position: absolute; }}
.stElementContainer:has(+ .stElementContainer [data-formula] > *) {{ display: none; }}
.await {{ display: grid; gap: 0.5rem; justify-items: center; font-size: 0.875rem; }}
.await progress {{ width: min(20rem, 100%); height: 0.5rem; accent-color: {primary}; visibility: visible; }}
{COVERED}
{SLOTS}
{ROOM}
{TOUCH}
.stMain:has(.st-key-text_line .text-line[data-pale]) .st-key-picture {{ opacity: 0.4; }}
"""
hall = in_hall()
if hall:
    style += HALL_STYLE
arrive(language())
st.session_state.framed = language()
page = register()
st.set_page_config(page_title=f"{page.title} · Vitrine")
st.html(f"<style>{style}</style><script>{NAME_LANGUAGE[language()]}</script>", unsafe_allow_javascript=True)
go_to(page.url_path)
begin_page()
find_newest()
if hall:
    ask_in_hall()
else:
    show_underway(page.url_path)
    show_search()
    show_tour()
page.run()
name = page.url_path or next(iter(ICONS))
if not hall:
    with st.container(horizontal=True):
        show_next(name)
        if name in SCREENS and not limits().read_only:
            offer_to_add(name)
