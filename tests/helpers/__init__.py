"""What several test files use: tiny models, pages run without a browser, the browser, runs made in a moment."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
