"""A sentence written in another language: where each word comes from, and what searching for a better one finds.

Read next: writing.py.
"""
