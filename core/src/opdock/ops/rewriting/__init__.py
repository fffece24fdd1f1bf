"""Python's control flow over tensors, as TensorFlow's AutoGraph has it.

`calls.py` says which function is rewritten, `conversion.py` has the library rewrite it, and the
other files are what rewritten code calls in the place of `if`, `while`, `for` and the like.
"""
