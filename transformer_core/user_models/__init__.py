"""Models that users opened, from a zip, a local folder or the hub."""
