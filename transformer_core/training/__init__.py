"""Training: data, objectives and the loop, leaves to root.

Read in this order: config, schedules, precision, data, batching, objectives, loop, state. Read next: config.py.
"""
