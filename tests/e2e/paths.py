"""Where the project lies.

Read next: serving.py.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
