"""Starting runs: the queue for processors, and the launcher of worker processes."""
