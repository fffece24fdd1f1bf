"""Passes that ask for no device: what is fetched, constant, equal, or needed."""
