"""Helpers that know nothing of graphs."""
