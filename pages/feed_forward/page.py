"""Feed-forward: activations and the sentence's neurons on them, GELU as a coin, what single neurons do."""

from pages.feed_forward.coin import BERNOULLI
from pages.feed_forward.curves import CURVES
from pages.feed_forward.neurons import DEAD, NEURONS
from pages.feed_forward.swap import SWAP
from pages.kit.header import header
from pages.kit.models import READERS
from pages.room import Page

SITES = ("*.feed_forward.activation", "*.feed_forward.pre_activation")
FEED_FORWARD = Page(
    "feed_forward", lambda: header(kinds=READERS), (CURVES, BERNOULLI, NEURONS, DEAD, SWAP), sites=SITES
)

if __name__ == "__main__":
    FEED_FORWARD.show()
