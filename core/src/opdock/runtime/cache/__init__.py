"""The programs that a session keeps, and how a step finds its own."""
