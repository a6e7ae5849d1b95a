"""What heads look at, and what they are worth.

Read next: heads.py.
"""
