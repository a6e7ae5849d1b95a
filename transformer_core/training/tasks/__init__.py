"""Tasks: what a run learns, one kind a file, and how each is measured on what it never saw.

Read next: task.py.
"""
