"""Rewrite rules, and the one walk that applies them."""
