"""The oracle: one naive NumPy function an op, one file a family, written for reading."""
