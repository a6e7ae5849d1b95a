"""Slopes on two logarithmic axes: with which power one thing grows with another.

Read next: neighbours.py.
"""

import numpy as np


def log_log_slope(x: np.ndarray, y: np.ndarray) -> float:
    """Return the slope of log y over log x by least squares; nan where fewer than two y are above 0, or all equal."""
    there = (y > 0) & np.isfinite(y)
    if there.sum() < 2 or np.ptp(y) <= 1e-9 * np.abs(y).max():
        return float("nan")
    return float(np.polyfit(np.log(x[there]), np.log(y[there]), 1)[0])
