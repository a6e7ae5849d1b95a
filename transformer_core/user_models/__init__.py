"""Opened models: those that people brought, from a zip, a folder or the hub, kept on a shelf of their own.

Read next: unpacking.py.
"""
