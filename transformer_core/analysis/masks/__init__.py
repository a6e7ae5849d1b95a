"""What a mask does to one head, to a batch, and to training."""
