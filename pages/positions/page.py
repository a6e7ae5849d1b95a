"""Positions: the sinusoidal matrix, other schemes, token plus position, what order is worth; beyond the length."""

from pages.positions.beyond import beyond_part
from pages.positions.exponent import exponent_part
from pages.positions.matrix import matrix_part
from pages.positions.order import order_part
from pages.positions.schemes import schemes_part
from pages.positions.sum import sum_part
from pages.ui.header import header
from pages.ui.models import READERS
from pages.ui.page_layout import parts_page

PARTS = {
    "matrix": matrix_part,
    "exponent": exponent_part,
    "schemes": schemes_part,
    "sum": sum_part,
    "order": order_part,
    "beyond": beyond_part,
}

parts_page("positions", lambda: header(kinds=READERS), PARTS, sites=("*position_embedding", "*embedding.*"))
