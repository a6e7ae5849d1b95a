"""Hues of classes: twenty that stay apart for every kind of colour vision, as far as twenty can.

Orange and blue come first; each next one was found by a search for the colour that lies farthest, in OKLab, from all
before it, seen by a normal eye and by a protanope's, a deuteranope's and a tritanope's (Machado et al. 2009).
Among the first two the least distance is 0.27, among six 0.07, among twenty 0.04; beyond about eight classes pointing
at one tells more than its hue.
"""

LIGHT = (
    *("#c04909", "#2d72d3", "#00b56b", "#871082", "#d490cd", "#c78b09", "#13745f", "#4936b6", "#d34a9a", "#8a88fa"),
    *("#99122e", "#f7857f", "#9b4fb2", "#7dacf3", "#2b91c1", "#a75579", "#743d60", "#729258", "#cf68d9", "#8f4f3e"),
)  # on white
DARK = (
    *("#fb942a", "#659ff4", "#3efac3", "#b75280", "#887c15", "#e5df00", "#795fe2", "#efa9e8", "#fe6270", "#1884b4"),
    *("#4ac9b4", "#02a671", "#bc87cd", "#a8d485", "#c25ccc", "#f6b915", "#95f472", "#d3694d", "#c7af6d", "#6180fe"),
)  # on near black
PALETTE = {"light": LIGHT, "dark": DARK}


def rim(hue: str, ink: str) -> str:
    """Return the outline of a held-out point: between its own hue and the ink, nearer to the ink."""
    pairs = zip(*(bytes.fromhex(colour[1:]) for colour in (hue, ink)), strict=True)
    return "#" + "".join(f"{round(one + 0.72 * (other - one)):02x}" for one, other in pairs)
