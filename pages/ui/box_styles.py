"""What covers, and answers that are waited for, look like: the entry script lays COVERED and SLOTS on every page."""

COVERED = """
:is([class*="st-key-cover_"], [class*="st-key-asked_"]) > .stElementContainer:has(i:is(.covered, .open)) {
  position: absolute;
}
[class*="st-key-cover_"]:has(> .stElementContainer i.covered) {
  opacity: 0.6; pointer-events: none; user-select: none; interactivity: inert;
}
:is([class*="st-key-cover_"], [class*="st-key-asked_"]):has(> .stElementContainer i.covered) {
  --covered: blur(7px) opacity(0.5); --covered-words: hidden; --covered-mark: blur(12px); --covered-line: blur(5px);
  --covered-lines: 0 0 / 100% calc(100% - 1rem) no-repeat
    repeating-linear-gradient(#0000 0 0.4em, #80808c33 0.4em 1.15em, #0000 1.15em 1.6em);
}
[class*="st-key-leftopen_"] {
  --covered: none; --covered-words: visible; --covered-mark: none; --covered-line: none; --covered-lines: none;
}
.role-mark { filter: var(--covered-mark, none); }
.role-mark.mark-line { filter: var(--covered-line, none); }
:is(.stCode, .stButton, .stTable, .stMetric) { visibility: var(--covered-words, inherit); }
.stHtml { background: var(--covered-lines, none); & > * { visibility: var(--covered-words, inherit); } }
:is(.stPlotlyChart, .katex) { filter: var(--covered, none); }
.stMarkdown :is([data-testid="stMarkdownContainer"], [data-testid="stCaptionContainer"]) {
  background: var(--covered-lines, none);
  & > * { visibility: var(--covered-words, inherit); }
}
"""
SLOTS = """
[data-testid="stLayoutWrapper"]:has(> [class*="st-key-slot_"]:not(:has(> *))) { position: absolute; }
[class*="st-key-old_"] > * > * { opacity: 0.4; }
"""
OLD = """
[data-testid="stLayoutWrapper"]:has(> [class*="st-key-slot_"] i.old) {
  position: absolute; align-self: center; width: min(26rem, 90%); z-index: 8; margin-top: 3rem;
  & [class*="st-key-room_"] { background: var(--surface); }
  & .stElementContainer:has(> * > i.old) { position: absolute; }
  & ~ * > * { opacity: 0.4; }
}
"""
