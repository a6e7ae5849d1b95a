"""Scenes that give every phone a part of an experiment of its own: how they are written, and each kind of part."""
