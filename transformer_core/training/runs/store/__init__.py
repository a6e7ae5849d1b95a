"""The folder of one run: its files, its database, and what readers get from them."""
