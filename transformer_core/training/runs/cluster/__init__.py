"""Runs on a Ray cluster: the server's RayRunner, the bridge process that talks to Ray, and what computes on a node.

A run's folder beside the server stays the only thing that pages, exports and the film read. On a node the same session
as in a worker process writes a folder there; the bridge takes over into the server's folder what is new in it.
"""
