"""Samples and error samples of the ops, one file a family."""
