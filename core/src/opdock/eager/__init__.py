"""Eager execution: a graph that runs each operation when it is made, and keeps none."""
