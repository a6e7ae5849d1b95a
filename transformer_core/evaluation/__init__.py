"""Evaluation: how good a model is at its task, measured on files, one file here for each kind of model."""
