"""Several nodes as one: the patterns that backends declare, and elementwise clusters."""
