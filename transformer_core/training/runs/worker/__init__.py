"""The worker process of one run: it builds the model, trains it, and records frames."""
