"""What attention heads look at, and how much the prediction depends on them."""
