"""Learning: one step by hand with every gradient, a weight followed through it, and where gradients die."""
