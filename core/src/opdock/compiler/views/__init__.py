"""Views: the compiler's graph as plugins see it, and the plugins' passes over it."""
