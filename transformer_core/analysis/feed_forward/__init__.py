"""What happens inside the feed-forward layer."""
