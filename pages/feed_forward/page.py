"""Feed-forward: activations and the sentence's neurons on them, GELU as a coin, what single neurons do."""

from pages.feed_forward.coin import coin_part
from pages.feed_forward.curves import curves_part
from pages.feed_forward.neurons import dead_part, neurons_part
from pages.feed_forward.swap import swap_part
from pages.ui.header import header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page

PARTS = {
    "curves": curves_part,
    "bernoulli": coin_part,
    "neurons": neurons_part,
    "dead": dead_part,
    "swap": swap_part,
}
SITES = ("*.feed_forward.activation", "*.feed_forward.pre_activation")

parts_page("feed_forward", lambda: header(kinds=READERS), PARTS, sites=SITES)
