"""What a run looks like over time.

Read next: moments.py.
"""
