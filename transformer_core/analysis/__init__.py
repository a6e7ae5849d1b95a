"""Analyses of a forward pass: one question per file, answered from recorded tensors."""
