"""What stands above a page of runs: its heading, language and link; and the text that is followed through a run."""

from pages.ui.header import DEFAULT_TEXT
from pages.ui.language import t
from pages.ui.url import text_input
from transformer_core.training.runs.store.run_store import RunStore

LABELS = {
    "classifier": "train.probe",
    "translation": "train.probe_letters",
    "gpt": "train.probe_begin",
    "bert": "train.probe_hidden",
}


def probe(store: RunStore) -> str:
    """Let a person type the text that is followed through a run, and return it.

    A classifier's is the sentence of all pages; the other kinds begin with a text of their own data.
    """
    kind = store.spec.data.kind
    if kind == "classifier":
        return text_input(t(LABELS[kind]), name="text", default=DEFAULT_TEXT)
    return text_input(t(LABELS[kind]), name=f"probe_{kind}", default=store.facts().get("prompt", ""))
