"""Layouts: flat pictures of high-dimensional points, and how far each can be trusted."""
