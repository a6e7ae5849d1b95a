"""Positions: the sinusoidal matrix, other schemes, token plus position, what order is worth; beyond the length."""

from pages.kit.header import header
from pages.kit.models import READERS
from pages.positions.beyond import BEYOND
from pages.positions.exponent import EXPONENT
from pages.positions.matrix import MATRIX
from pages.positions.order import ORDER
from pages.positions.schemes import SCHEMES
from pages.positions.sum import SUM
from pages.room import Page

SITES = ("*position_embedding", "*embedding.*")
POSITIONS = Page(
    "positions", lambda: header(kinds=READERS), (MATRIX, EXPONENT, SCHEMES, SUM, ORDER, BEYOND), sites=SITES
)

if __name__ == "__main__":
    POSITIONS.show()
