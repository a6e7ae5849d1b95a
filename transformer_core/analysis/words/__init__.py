"""Words before attention: how they are cut, and where their vectors lie.

Read next: tokenizing.py.
"""
