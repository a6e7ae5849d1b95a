"""The residual stream: its norms, its sum, and its depth."""
