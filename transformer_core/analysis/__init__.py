"""What a trace tells: one question a file, each answered from recorded tensors.

Read next: reading.py.
"""
