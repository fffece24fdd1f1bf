"""NVIDIA libraries of the stand-in."""
