"""TF's internal package paths, for programs that import from them."""
