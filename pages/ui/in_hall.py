"""A page in the projector's frame: its figures and its box of text; the rest is the lecturer's to say."""

from pages.ui.url import current, keep

HALL = "hall"  # in the link of a frame
HALL_HEIGHT = 1.3, 360  # of a chart there: as a share of its height on a page, and at most, in pixels
# The projector marks what a scene shows (data-shown, data-figures), and takes the marks off to show all controls.
STYLE = """
.stApp { --tools: none; --least-width: 0; --part-of-window: 0.54; --small-words: none; }
.stApp { --diagram-text: 17.5px; --diagram-shape: 17.5px; --diagram-font: var(--st-font, sans-serif); }
:is(.stAppHeader, .stAppToolbar, .stPopover, [data-testid="stElementToolbar"]) { display: none !important; }
:is(.stExpander:not(:has([data-shown])), .stExpander summary) { display: none !important; }
.st-key-title, [data-testid="stBaseButton-tertiary"], .st-key-text_line { display: none !important; }
:is(.st-key-examples, .st-key-notice) { display: none !important; }
:is([class*="st-key-question_"], [class*="st-key-ask_"], .st-key-home_open) { display: none !important; }
.stHorizontalBlock:has(> .stColumn .st-key-language_and_share) {
  & > .stColumn:not(:first-child), & [data-testid="stWidgetLabel"] { display: none; }
}
.stExpander details { border: 0; }
[data-testid="stLayoutWrapper"]:has(> .st-key-asked_by_keys) { position: absolute; }
.stMainBlockContainer { padding: 0.5rem 1rem; }
html[data-figures] .stMainBlockContainer .stVerticalBlock { gap: 0.5rem; }
html[data-figures] .st-key-picture {
  margin-inline: auto;
  & .stElementContainer:not([data-shown]) { display: none; }
  & :is(.stColumn, [data-testid="stLayoutWrapper"]):not(:has([data-shown])) { display: none; }
  & .stColumn:not(:has(.stColumn)) { flex: 1 1 0; width: auto; min-width: 0; }
}
"""


def in_hall() -> bool:
    """Tell whether the page is shown in the projector's frame; keeps it so from page to page."""
    if current(HALL) != "1":
        return False
    keep(HALL, "1", "")
    return True
