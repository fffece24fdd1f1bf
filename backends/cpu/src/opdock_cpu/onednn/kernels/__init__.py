"""Kernels on oneDNN. Each stands above its op's NumPy kernel, which serves what it declines."""
