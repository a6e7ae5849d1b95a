"""What happens inside the feed-forward layer.

Read next: activations.py.
"""
