"""A bound program, and what runs it."""
