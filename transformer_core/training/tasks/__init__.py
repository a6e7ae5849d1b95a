"""Tasks: what a run learns, one kind a file, and how each is measured on held-out examples."""
