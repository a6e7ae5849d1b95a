"""Recipes: the training of each shipped bundle as a command: `python -m transformer_core.recipes.NAME --data DIR`."""
