"""Training: settings, data, objectives and the loop, lowest layer first.

In reading order: config, optimizers, precision, examples, batching, objectives, loop, state, baselines; then corpora
(our own data), intake (other people's data), tasks (what is learned) and runs (training in the background).
"""
