"""One token of the sentence, chosen from a list; a choice beyond a shortened sentence falls back to the first token.

Read next: feed_forward.py.
"""

from pages.ui.header import View
from pages.ui.url import choose_from_list, current, forget


def choose_token(label: str, view: View, *, name: str) -> tuple[int, str]:
    """Show the list of tokens and return the position of the one chosen, with what it is called in it.

    Args:
        name: the choice's name in the URL.
    """
    called = [f"{place} · {token}" for place, token in enumerate(view.encoding.labels)]
    asked = str(current(name) or "0")
    if asked.isascii() and asked.isdigit() and len(asked) <= 4 and int(asked) >= len(called):
        forget(name)
    chosen = int(choose_from_list(label, {str(place): word for place, word in enumerate(called)}, name=name) or 0)
    return chosen, called[chosen]
