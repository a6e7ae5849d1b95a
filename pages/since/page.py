"""Since 2017: a ladder from the decoder of the paper to those of today, one change a rung, and what each was worth."""

from pages.kit.header import View, header
from pages.room import Page
from pages.since.change import CHANGE
from pages.since.ladder import LADDER

EXAMPLE = "Once upon a time, there was a little elephant who loved to"


def header_of_since() -> View:
    """Show the header with the models that this page can run."""
    return header(kinds=("gpt",), example=EXAMPLE)


SITES = ("*.feed_forward.*", "*norm.*", "*.self_attention.*")
SINCE = Page("since", header_of_since, (CHANGE, LADDER), sites=SITES)

if __name__ == "__main__":
    SINCE.show()
