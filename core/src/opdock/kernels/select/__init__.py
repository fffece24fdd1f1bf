"""Kernel records, the table, and which of them serves a node."""
