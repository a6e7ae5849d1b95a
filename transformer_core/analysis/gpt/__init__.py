"""What a GPT expects, how it writes on, how its answer takes shape, and what its mask is for.

Read next: kept.py.
"""
