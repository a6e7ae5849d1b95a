"""Before Transformers: what gates keep, what a decoder looks at, how far a gradient reaches, what a step costs."""
