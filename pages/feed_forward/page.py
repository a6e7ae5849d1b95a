"""Feed-forward: activations and the sentence's neurons on them, GELU as a coin, single neurons, mixtures of experts."""

from dataclasses import replace

from pages.feed_forward.coin import BERNOULLI
from pages.feed_forward.curves import CURVES
from pages.feed_forward.mixture import MIXTURE
from pages.feed_forward.neurons import DEAD, NEURONS
from pages.feed_forward.swap import SWAP
from pages.kit.header import header
from pages.kit.models import READERS
from pages.kit.verdict import is_dense
from pages.room import Page, Part

SITES = ("*.feed_forward.activation", "*.feed_forward.pre_activation")


def _of_dense(part: Part) -> Part:
    """Return a part that says in a line what it needs where the model is a mixture of experts."""
    return replace(part, show=lambda view: part.show(view) if is_dense(view) else None)


FEED_FORWARD = Page(
    "feed_forward",
    lambda: header(kinds=READERS),
    (_of_dense(CURVES), BERNOULLI, *map(_of_dense, (NEURONS, DEAD, SWAP)), MIXTURE),
    sites=SITES,
)

if __name__ == "__main__":
    FEED_FORWARD.show()
