"""Runs that outlast a click: settings, a folder of frames on disk, and the worker process that fills it.

Read next: spec.py.
"""
