"""Positions: how a Transformer learns the order of its tokens, what the formula's slip changes, what order is worth.

Read next: figures/positions.py.
"""

from pages.ui.header import header
from pages.ui.model_page import parts_page
from pages.ui.models import READERS
from pages.ui.positions import matrix_part
from pages.ui.positions_exponent import exponent_part
from pages.ui.positions_order import order_part
from pages.ui.positions_schemes import schemes_part
from pages.ui.positions_sum import sum_part

PARTS = {
    "matrix": matrix_part,
    "exponent": lambda _: exponent_part(),
    "schemes": schemes_part,
    "sum": sum_part,
    "order": order_part,
}

parts_page("positions", lambda: header(kinds=READERS), PARTS, sites=("*position_embedding", "*embedding.*"))
