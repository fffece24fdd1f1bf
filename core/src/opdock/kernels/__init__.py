"""Kernels: the records that backends fill, their selection, and the portable ones of core."""
