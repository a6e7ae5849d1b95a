"""Recipes: how each shipped checkpoint was trained, as one command.

`python -m transformer_core.recipes.NAME --data DIR`. Read next: reviews.py.
"""
