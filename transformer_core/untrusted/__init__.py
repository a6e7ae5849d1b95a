"""What somebody brings from outside is checked here before it is used."""
