"""Functions that stand for bodies and branches, and version 1 control flow read into them."""
